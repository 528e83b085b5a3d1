"""Linked work trees: the user's checkout is never touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.git import creation
from lopen.git.errors import GitError
from lopen.git.repository import Repository
from tests.git.conftest import run_git


def test_a_linked_work_tree_has_the_files_and_its_own_branch(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    (root / "README").write_text("uncommitted\n")
    before = run_git(root, "status", "--porcelain")
    linked = creation.add_work_tree(repository, tmp_path / "cache" / "m", "lopen/m")
    assert linked.head().branch == "lopen/m"
    assert (linked.root / "README").read_text() == "Read me\n"
    assert run_git(linked.root, "status", "--porcelain") == ""
    (linked.root / "new").write_text("x")
    sha = linked.commit(linked.snapshot(), linked.head().commit, "x\n", "lopen/m")
    assert repository.branch_tip("lopen/m") == sha
    assert run_git(root, "status", "--porcelain") == before
    assert repository.head().branch == "main"


def test_two_modules_side_by_side(repository: Repository, tmp_path: Path) -> None:
    one = creation.add_work_tree(repository, tmp_path / "one", "lopen/one")
    two = creation.add_work_tree(repository, tmp_path / "two", "lopen/two")
    (one.root / "x").write_text("1")
    assert two.snapshot() != one.snapshot()
    with pytest.raises(GitError):
        creation.add_work_tree(repository, tmp_path / "three", "lopen/one")


def test_it_is_removed_only_when_clean_and_its_branch_stays(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    path = tmp_path / "m"
    linked = creation.add_work_tree(repository, path, "lopen/m")
    (path / "work").write_text("x")
    with pytest.raises(GitError, match="uncommitted work: work"):
        creation.remove_work_tree(repository, path)
    tip = linked.commit(linked.snapshot(), linked.head().commit, "x\n", "lopen/m")
    creation.remove_work_tree(repository, path)
    assert not path.exists()
    assert repository.branch_tip("lopen/m") == tip
    again = creation.add_work_tree(repository, path, "lopen/m")
    assert (again.root / "work").read_text() == "x"


def test_a_deleted_one_does_not_hold_its_branch(repository: Repository, tmp_path: Path) -> None:
    creation.add_work_tree(repository, tmp_path / "m", "lopen/m")
    shutil.rmtree(tmp_path / "m")
    assert creation.add_work_tree(repository, tmp_path / "m", "lopen/m").head().branch == "lopen/m"


def test_a_folder_with_something_in_it_is_not_taken(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "file").write_text("x")
    with pytest.raises(GitError, match="not empty"):
        creation.add_work_tree(repository, tmp_path / "m", "lopen/m")


def test_a_commit_is_needed_first(empty_root: Path, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no commit yet"):
        creation.add_work_tree(Repository.open(empty_root, clock=FakeClock()), tmp_path / "m", "lopen/m")


def test_what_others_move_meanwhile_is_not_put_back(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    linked = creation.add_detached_work_tree(
        repository, tmp_path / "m", run_git(root, "rev-parse", "HEAD"), "lopen/m"
    )
    assert linked.head().branch is None
    linked.branches.start("lopen/m")
    start = linked.head().commit
    before = linked.protected_state()

    run_git(root, "commit", "-q", "--allow-empty", "-m", "the person's")
    run_git(root, "branch", "theirs")
    creation.add_work_tree(repository, tmp_path / "other", "lopen/other")
    theirs = run_git(root, "rev-parse", "main")
    run_git(linked.root, "commit", "-q", "--allow-empty", "-m", "a command's")
    (linked.root / ".git").write_text(f"gitdir: {root}/.git\n")
    run_git(root, "config", "core.fsmonitor", "evil")

    restored = linked.restore_protected(before).restored
    own = f"{root}/.git/worktrees/m"
    assert set(restored) == {f"{linked.root}/.git", f"{root}/.git/config", f"{root}/.git/refs/heads/lopen/m"}
    assert Path(own, "HEAD").read_text() == "ref: refs/heads/lopen/m\n"
    assert linked.head().commit == start
    assert run_git(root, "rev-parse", "main", "theirs", "lopen/other").split() == [theirs] * 3


def test_a_work_tree_of_another_repository_is_not_taken(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    run_git(root, "init", "-q", str(tmp_path / "foreign"))
    with pytest.raises(GitError, match="not a work tree of"):
        repository.linked(tmp_path / "foreign", "lopen/m")


def test_a_branch_that_the_person_has_checked_out_is_left_to_them(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    run_git(root, "switch", "-qc", "lopen/m")
    with pytest.raises(GitError, match="is checked out in") as caught:
        creation.add_work_tree(repository, tmp_path / "m", "lopen/m")
    assert "git switch main" in caught.value.hint


def test_one_that_git_was_killed_over_is_forgotten(
    root: Path, repository: Repository, tmp_path: Path
) -> None:
    path = creation.add_work_tree(repository, tmp_path / "m", "lopen/m").root
    (root / ".git/worktrees/m/locked").write_text("initializing")
    shutil.rmtree(path)
    creation.forget_work_tree(repository, path)
    assert creation.add_work_tree(repository, path, "lopen/m").head().branch == "lopen/m"
