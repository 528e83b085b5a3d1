"""Nothing that a repository's own configuration names ever runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.git import clones
from lopen.git.errors import GitError
from lopen.git.repository import CheckoutOptions, Repository
from tests.git.conftest import begin, run_git


class Trap:
    """A program that leaves a mark when it runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.mark = folder / "ran"
        self.program = folder / "trap"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{self.mark}"\ncat\n')
        self.program.chmod(0o755)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.program.read_text())
        path.chmod(0o755)

    @property
    def sprung(self) -> str:
        return self.mark.read_text() if self.mark.exists() else ""


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "trap")


POISONS = {
    "fsmonitor": ["core.fsmonitor={trap}"],
    "external diff": ["diff.external={trap}"],
    "diff driver": ["diff.evil.command={trap}", "diff.evil.textconv={trap}", "diff.evil.cachetextconv=true"],
    "filter": ["filter.evil.clean={trap}", "filter.evil.smudge={trap}", "filter.evil.required=true"],
    "filter process": ["filter.evil.process={trap}", "filter.evil.required=true"],
    "merge driver": ["merge.evil.driver={trap}"],
    "hooks path": ["core.hooksPath={hooks}"],
    "signing": [
        "commit.gpgSign=true",
        "gpg.program={trap}",
        "gpg.format=ssh",
        "gpg.ssh.program={trap}",
        "log.showSignature=true",
    ],
    "pager": ["core.pager={trap}", "pager.diff={trap}", "pager.status={trap}", "pager.diff-tree={trap}"],
    "editor": ["core.editor={trap}", "sequence.editor={trap}", "core.askPass={trap}"],
    "aliases": [f"alias.{name}=!{{trap}}" for name in ("status", "diff-tree", "write-tree", "commit-tree")],
    "ssh": ["core.sshCommand={trap}", "core.gitProxy={trap}", "credential.helper=!{trap}"],
    "trailer": ["trailer.lopen-task.command={trap}", "trailer.lopen-task.cmd={trap}", "trailer.separators=x"],
    "lazy fetch": [
        "extensions.partialClone=evil",
        "remote.evil.promisor=true",
        "remote.evil.url=ext::{trap}",
        "protocol.ext.allow=always",
        "protocol.allow=always",
    ],
    "maintenance": ["gc.auto=1", "gc.recentObjectsHook={trap}", "maintenance.auto=true"],
}


@pytest.fixture(params=POISONS)
def poisoned(request: pytest.FixtureRequest, root: Path, trap: Trap) -> Path:
    """The repository, its configuration, hooks and attributes prepared to run the trap."""
    hooks = trap.program.parent / "hooks"
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change", "post-checkout"):
        trap.write(hooks / name)
        trap.write(root / ".git" / "hooks" / name)
    (root / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (root / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    for line in POISONS[request.param]:
        key, value = line.format(trap=trap.program, hooks=hooks).split("=", 1)
        run_git(root, "config", key, value)
    return root


def everything(root: Path) -> None:
    """Every kind of work lopen does in a repository."""
    repository = Repository.open(root, clock=FakeClock())
    repository.dirty(lambda _: False)
    begin(repository, "lopen/m")
    (root / "README").write_text("changed\n")
    (root / "new.bin").write_bytes(b"\0\1")
    start = repository.head().commit
    assert start is not None
    tree = repository.snapshot()
    assert "+changed" in repository.diff(start, tree)
    assert repository.file_at(tree, "README") == b"changed\n"
    sha = repository.commit(tree, start, "feat: x\n\nLopen-Session: s\nLopen-Task: t\n", "lopen/m")
    assert repository.find_commit("s", "t") is not None
    (root / "README").write_text("uncommitted\n")
    assert "uncommitted" in repository.diff(sha, repository.snapshot())
    repository.blobs(["README"])
    repository.restore(tree, ["README"])
    assert (root / "README").read_text() == "changed\n"
    repository.backup("s")
    repository.reset_to(start)
    assert repository.reachable(start, "lopen/m")
    assert not repository.reachable(sha, "lopen/m")
    repository.hooks_snapshot()
    head = repository.head().commit
    assert head is not None
    clone = clones.make_clone(repository, root.parent / "clone", head, CheckoutOptions(), links=True)
    clone.snapshot()


def test_no_configuration_of_a_repository_runs_anything(poisoned: Path, trap: Trap) -> None:
    everything(poisoned)
    assert trap.sprung == ""


def test_the_traps_would_spring_for_plain_git(root: Path, trap: Trap) -> None:
    """Without this the other tests might prove nothing."""
    run_git(root, "config", "filter.evil.clean", str(trap.program))
    (root / ".gitattributes").write_text("* filter=evil\n")
    (root / "README").write_text("changed\n")
    run_git(root, "add", "-A")
    assert trap.sprung


def test_includes_are_no_way_round(root: Path, trap: Trap) -> None:
    (root / "evil.config").write_text(
        f'[filter "evil"]\n\tclean = {trap.program}\n[core]\n\tfsmonitor = {trap.program}\n'
        f"[diff]\n\texternal = {trap.program}\n"
    )
    (root / ".gitattributes").write_text("* filter=evil\n")
    run_git(root, "config", "include.path", "../evil.config")
    run_git(root, "config", "includeIf.onbranch:lopen/**.path", "../evil.config")
    run_git(root, "config", "extensions.worktreeConfig", "true")
    (root / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {trap.program}\n")
    everything(root)
    assert trap.sprung == ""


def test_a_configured_work_tree_elsewhere_is_refused(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run_git(root, "config", "core.worktree", str(elsewhere))
    with pytest.raises(GitError, match="not the top"):
        Repository.open(root, clock=FakeClock())


def test_a_work_tree_configured_after_opening_is_not_followed(
    root: Path, tmp_path: Path, repository: Repository
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    start = repository.head().commit
    assert start is not None
    run_git(root, "config", "core.worktree", str(elsewhere))
    (root / "README").write_text("changed\n")
    repository.reset_to(start)
    assert (root / "README").read_text() == "Read me\n"
    assert list(elsewhere.iterdir()) == []


def test_a_filter_that_only_the_repository_configures_is_named(root: Path) -> None:
    run_git(root, "config", "filter.nb.clean", "true")
    run_git(root, "config", "--global", "filter.lfs.clean", "cat")
    run_git(root, "config", "filter.lfs.clean", "false")
    assert Repository.open(root, clock=FakeClock()).ignored_filters == ("nb",)


def test_a_submodules_configuration_runs_nothing(root: Path, trap: Trap, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    run_git(other, "init", "-q")
    (other / "file").write_text("x")
    run_git(other, "add", "-A")
    run_git(other, "commit", "-qm", "x")
    run_git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    run_git(root, "commit", "-qm", "Add a submodule")
    run_git(root / "sub", "config", "core.fsmonitor", str(trap.program))
    (root / "sub" / "file").write_text("changed")
    repository = Repository.open(root, clock=FakeClock())
    assert repository.snapshot() == run_git(root, "rev-parse", "HEAD^{tree}")
    assert repository.embedded == ()
    assert trap.sprung == ""


def test_variables_of_a_surrounding_git_are_not_passed_on(
    root: Path, tmp_path: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "their-index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "their-objects"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap.program))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor'='{trap.program}'")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(trap.program))
    repository = Repository.open(root, clock=FakeClock())
    (root / "README").write_text("changed\n")
    tree = repository.snapshot()
    start = repository.head().commit
    assert start is not None
    assert "+changed" in repository.diff(start, tree)
    repository.commit(tree, start, "x\n", "main")
    assert trap.sprung == ""
    assert not (tmp_path / "their-index").exists()
    assert not (tmp_path / "their-objects").exists()


def test_replaced_objects_are_not_shown_for_the_real_ones(root: Path, repository: Repository) -> None:
    tree = repository.snapshot()
    real = run_git(root, "rev-parse", "HEAD:README")
    (root / "other").write_text("forged\n")
    run_git(root, "replace", real, run_git(root, "hash-object", "-w", "other"))
    assert repository.file_at(tree, "README") == b"Read me\n"
