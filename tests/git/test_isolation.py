"""Linked work trees: the user's checkout is never touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lopen.clock import FakeClock
from lopen.git.errors import GitError
from lopen.git.repository import Repository
from tests.git.conftest import run_git


def test_a_linked_work_tree_has_the_files_and_its_own_branch(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    (root / "README").write_text("uncommitted\n")
    before = run_git(root, "status", "--porcelain")
    linked = repository.add_worktree(tmp_path / "cache" / "m", "lopen/m")
    assert linked.head().branch == "lopen/m"
    assert (linked.root / "README").read_text() == "Read me\n"
    assert run_git(linked.root, "status", "--porcelain") == ""
    (linked.root / "new").write_text("x")
    sha = linked.commit(linked.snapshot(), linked.head().commit, "x\n", "lopen/m")
    assert repository.branch_tip("lopen/m") == sha
    assert run_git(root, "status", "--porcelain") == before
    assert repository.head().branch == "main"


def test_two_modules_side_by_side(repository: Repository, tmp_path: Path) -> None:
    one = repository.add_worktree(tmp_path / "one", "lopen/one")
    two = repository.add_worktree(tmp_path / "two", "lopen/two")
    (one.root / "x").write_text("1")
    assert two.snapshot() != one.snapshot()
    with pytest.raises(GitError):
        repository.add_worktree(tmp_path / "three", "lopen/one")


def test_it_is_removed_only_when_clean_and_its_branch_stays(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    path = tmp_path / "m"
    linked = repository.add_worktree(path, "lopen/m")
    (path / "work").write_text("x")
    with pytest.raises(GitError, match="uncommitted work: work"):
        repository.remove_worktree(path)
    tip = linked.commit(linked.snapshot(), linked.head().commit, "x\n", "lopen/m")
    repository.remove_worktree(path)
    assert not path.exists()
    assert repository.branch_tip("lopen/m") == tip
    again = repository.add_worktree(path, "lopen/m")
    assert (again.root / "work").read_text() == "x"


def test_a_deleted_one_does_not_hold_its_branch(repository: Repository, tmp_path: Path) -> None:
    repository.add_worktree(tmp_path / "m", "lopen/m")
    shutil.rmtree(tmp_path / "m")
    assert repository.add_worktree(tmp_path / "m", "lopen/m").head().branch == "lopen/m"


def test_a_folder_with_something_in_it_is_not_taken(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "file").write_text("x")
    with pytest.raises(GitError, match="not empty"):
        repository.add_worktree(tmp_path / "m", "lopen/m")


def test_a_commit_is_needed_first(empty_root: Path, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no commit yet"):
        Repository.open(empty_root, clock=FakeClock()).add_worktree(tmp_path / "m", "lopen/m")
