"""Backups and resets: back to a commit, with nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.git.repository import Repository
from tests.git.conftest import begin, run_git


def commit(repository: Repository) -> str:
    return repository.commit(
        repository.snapshot(), repository.head().commit, "x\n", str(repository.head().branch)
    )


def test_a_backup_keeps_head_and_uncommitted_work(root: Path, repository: Repository) -> None:
    head = repository.head().commit
    (root / "README").write_text("uncommitted\n")
    (root / "new").write_text("new\n")
    name = repository.backup("m-20260101-1")
    assert name == "refs/lopen/backup/m-20260101-1/1"
    assert run_git(root, "rev-parse", f"{name}^") == head
    assert run_git(root, "show", f"{name}:README") == "uncommitted"
    assert run_git(root, "show", f"{name}:new") == "new"
    assert repository.backup("m-20260101-1").endswith("/2")
    assert (root / "README").read_text() == "uncommitted\n"


@pytest.mark.parametrize("session", ["a b..c.lock", "../../heads/main", "", "@{-1}"])
def test_any_session_id_makes_a_name_below_the_backups(repository: Repository, session: str) -> None:
    name = repository.backup(session)
    assert name.startswith("refs/lopen/backup/")
    assert ".." not in name
    assert repository.references.tip(name) == repository.head().commit


def test_a_reset_brings_branch_index_and_files_back(root: Path, repository: Repository) -> None:
    start = begin(repository, "lopen/m").commit
    assert start is not None
    (root / ".gitignore").write_text("*.log\n")
    base = commit(repository)
    (root / "README").write_text("second\n")
    (root / "lib").mkdir()
    (root / "lib" / "new.py").write_text("x")
    (root / "src" / "app.py").unlink()
    commit(repository)
    (root / "untracked").write_text("x")
    (root / "run.log").write_text("kept")
    (root / "README").write_text("uncommitted\n")
    backup = repository.backup("s")
    repository.reset_to(base)
    assert repository.head().commit == base
    assert repository.head().branch == "lopen/m"
    assert run_git(root, "status", "--porcelain") == ""
    assert (root / "README").read_text() == "Read me\n"
    assert not (root / "lib").exists()
    assert not (root / "untracked").exists()
    assert (root / "run.log").read_text() == "kept"
    assert (root / "src" / "app.py").is_file()
    assert run_git(root, "show", f"{backup}:README") == "uncommitted"


def test_a_reset_past_the_ignore_file_leaves_what_was_ignored(root: Path, repository: Repository) -> None:
    start = repository.head().commit
    assert start is not None
    (root / ".gitignore").write_text("private\n")
    (root / "private").write_text("kept")
    commit(repository)
    repository.reset_to(start)
    assert (root / "private").read_text() == "kept"
    assert not (root / ".gitignore").exists()


def test_a_detached_head_is_reset_too(root: Path, repository: Repository) -> None:
    start = repository.head().commit
    assert start is not None
    run_git(root, "commit", "-q", "--allow-empty", "-m", "x")
    run_git(root, "checkout", "-q", "--detach")
    repository.reset_to(start)
    assert repository.head().commit == start
    assert repository.branch_tip("main") != start


def test_a_reset_that_was_cut_short_can_be_repeated(root: Path, repository: Repository) -> None:
    start = repository.head().commit
    assert start is not None
    (root / "README").write_text("x\n")
    (root / "new").write_text("x")
    commit(repository)
    repository.restore(run_git(root, "rev-parse", f"{start}^{{tree}}"), ["README"])
    repository.reset_to(start)
    assert run_git(root, "status", "--porcelain") == ""
    assert not (root / "new").exists()
