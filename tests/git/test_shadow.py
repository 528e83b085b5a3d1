"""Snapshots of a folder that has no repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.git.repository import Repository
from lopen.git.shadow import ShadowTree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "plain"
    root.mkdir()
    (root / "a").write_text("one\n")
    return root


def shadow(folder: Path) -> ShadowTree:
    return Repository.shadow(folder, folder / ".lopen" / "cache" / "shadow.git", clock=FakeClock())


def test_the_same_questions_are_answered(folder: Path) -> None:
    tree = shadow(folder)
    first = tree.snapshot()
    (folder / "a").write_text("two\n")
    (folder / "b").write_text("new\n")
    second = tree.snapshot()
    assert "-one\n+two" in tree.diff(first, second)
    assert [(c.path, c.kind) for c in tree.changes(first, second)] == [("a", "modified"), ("b", "added")]
    assert tree.file_at(first, "a") == b"one\n"
    tree.restore(first, ["a", "b"])
    assert (folder / "a").read_text() == "one\n"
    assert tree.snapshot() == first
    assert not (folder / ".git").exists()


def test_it_goes_on_in_another_process(folder: Path) -> None:
    first = shadow(folder).snapshot()
    (folder / "b").write_text("x")
    again = shadow(folder)
    assert again.snapshot() != first
    assert again.file_at(first, "a") == b"one\n"


def test_unchanged_files_are_not_added_again(folder: Path, spawned: Callable[[], list[str]]) -> None:
    tree = shadow(folder)
    tree.snapshot()
    tree.snapshot()
    spawned()
    tree.snapshot()
    assert "update-index" not in spawned()


def test_what_becomes_ignored_leaves(folder: Path) -> None:
    tree = shadow(folder)
    (folder / "run.log").write_text("x")
    with_log = tree.snapshot()
    (folder / ".gitignore").write_text("*.log\n")
    now = tree.snapshot()
    assert tree.file_at(with_log, "run.log") == b"x"
    assert tree.file_at(now, "run.log") is None
    assert (folder / "run.log").exists()


def test_left_overs_stay_out(folder: Path) -> None:
    tree = shadow(folder)
    before = tree.snapshot()
    (folder / "report").write_text("x")
    assert tree.snapshot(tree.blobs(["report"])) == before


def test_a_deleted_cache_is_made_anew(folder: Path) -> None:
    tree = shadow(folder).snapshot()
    objects = folder / ".lopen" / "cache" / "shadow.git" / "objects"
    for path in sorted(objects.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert shadow(folder).snapshot() == tree


def test_locks_that_a_dead_process_left_are_swept(folder: Path) -> None:
    before = shadow(folder).snapshot()
    for name in ("index.lock", "index.work.lock", "index.restore.lock"):
        (folder / ".lopen" / "cache" / "shadow.git" / name).touch()
    (folder / "a").write_text("two\n")
    again = shadow(folder)
    assert again.snapshot() != before
    again.restore(before, ["a"])
    assert again.snapshot() == before


def test_a_planted_configuration_runs_nothing(folder: Path, tmp_path: Path) -> None:
    tree = shadow(folder)
    tree.snapshot()
    mark = tmp_path / "ran"
    git_dir = folder / ".lopen" / "cache" / "shadow.git"
    (git_dir / "config").write_text(
        f'[filter "evil"]\n\tclean = touch {mark}\n[core]\n\tfsmonitor = touch {mark}\n'
    )
    (git_dir / "info" / "attributes").write_text("* filter=evil\n")
    (folder / "a").write_text("two\n")
    tree.snapshot()
    assert not mark.exists()


def test_no_index_lies_where_a_command_could_mark_files_in_it(folder: Path) -> None:
    tree = shadow(folder)
    first = tree.snapshot()
    (folder / "a").write_text("two\n")
    tree.restore(first, ["a"])
    assert list((folder / ".lopen").rglob("index*")) == []
