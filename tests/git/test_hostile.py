"""A repository's configuration and a surrounding git decide nothing; what would run is in tests/e2e/test_hostile.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.git.errors import GitError
from lopen.git.repository import Repository
from tests.fakes import FakeClock
from tests.git.conftest import file_at, run_git


class Trap:
    """A program that leaves a mark when it runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.mark = folder / "ran"
        self.program = folder / "trap"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> "{self.mark}"\ncat\n')
        self.program.chmod(0o755)

    @property
    def sprung(self) -> str:
        return self.mark.read_text() if self.mark.exists() else ""


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "trap")


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
    assert file_at(repository, tree, "README") == b"Read me\n"
