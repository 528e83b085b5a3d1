"""The repository's own hooks: run as they were when the session began, on scratch space, before a commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lopen.git import commits
from lopen.git.commit_hooks import HooksSnapshot
from lopen.git.repository import Repository
from tests.git.conftest import run_git

MESSAGE = commits.completion_message(
    module="m", task="T", component="C", session="s", task_id="t", verdict="passed (high)"
)


def write_hook(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return folder / name


class Runner:
    """Runs a hook in the project, as the sandbox would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran: list[Sequence[str]] = []

    def __call__(self, argv: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
        self.ran.append(argv)
        done = subprocess.run(
            argv,
            cwd=self.root,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout.decode()


@pytest.fixture
def runner(root: Path) -> Runner:
    return Runner(root)


def test_hooks_see_what_is_about_to_be_committed(
    root: Path, repository: Repository, runner: Runner, tmp_path: Path
) -> None:
    write_hook(root / ".git" / "hooks", "pre-commit", "git diff --cached --name-only; git status --porcelain")
    write_hook(root / ".git" / "hooks", "commit-msg", 'head -1 "$1"')
    (root / "README").write_text("changed\n")
    (root / "new").write_text("x")
    tree = repository.snapshot()
    outcome = repository.run_hooks(repository.hooks_snapshot(), tree, MESSAGE, runner, folder=tmp_path / "h")
    assert outcome.passed
    assert outcome.output.split("\n") == [
        "README",
        "new",
        "M  README",
        "A  new",
        "",
        "feat(m): complete T in C",
        "",
    ]
    assert outcome.tree_after == tree
    assert run_git(root, "diff", "--cached", "--name-only") == ""


def test_a_message_may_be_rewritten_but_keeps_lopens_trailers(
    root: Path, repository: Repository, runner: Runner, tmp_path: Path
) -> None:
    write_hook(
        root / ".git" / "hooks", "commit-msg", 'printf "JIRA-1 rewritten\\n\\nChange-Id: I1\\n" > "$1"'
    )
    outcome = repository.run_hooks(
        repository.hooks_snapshot(), repository.snapshot(), MESSAGE, runner, folder=tmp_path / "h"
    )
    assert outcome.message_after.startswith("JIRA-1 rewritten\n")
    repository.commit(outcome.tree_after, repository.head().commit, outcome.message_after, "main")
    assert repository.find_commit("s", "t") is not None


def test_a_configured_hooks_folder_is_honoured(root: Path, repository: Repository, tmp_path: Path) -> None:
    write_hook(root / ".git" / "hooks", "pre-commit", "true")
    write_hook(root / ".husky", "pre-commit", "true")
    run_git(root, "config", "core.hooksPath", ".husky")
    assert [hook.path for hook in repository.hooks_snapshot().hooks] == [".husky/pre-commit"]
    write_hook(tmp_path / "home" / "hooks", "commit-msg", "true")
    run_git(root, "config", "core.hooksPath", "~/hooks")
    assert [(hook.name, hook.path) for hook in repository.hooks_snapshot().hooks] == [("commit-msg", "")]


def test_a_hook_changed_since_runs_as_it_was(
    root: Path, repository: Repository, runner: Runner, tmp_path: Path
) -> None:
    path = write_hook(root / ".git" / "hooks", "pre-commit", "echo strict; exit 1")
    snapshot = HooksSnapshot.from_json(repository.hooks_snapshot().to_json())
    write_hook(path.parent, "pre-commit", "exit 0")
    write_hook(path.parent, "commit-msg", "echo new; exit 1")
    for _ in range(2):
        outcome = repository.run_hooks(
            snapshot, repository.snapshot(), MESSAGE, runner, folder=tmp_path / "h"
        )
        assert not outcome.passed
        assert "strict" in outcome.output
        path.unlink(missing_ok=True)
