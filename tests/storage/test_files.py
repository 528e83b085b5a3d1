"""Writing a whole file: all of it, or nothing and nothing left lying about."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from lopen.base.atomic_files import write_whole
from lopen.base.errors import StorageError


def test_a_file_is_made_with_its_folders_and_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "plan.md"
    write_whole(path, "one\r\ntwo\n")
    assert path.read_bytes() == b"one\r\ntwo\n", "line ends are the caller's"
    write_whole(path, "three")
    assert path.read_text("utf-8") == "three"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_a_link_is_replaced_and_what_it_leads_to_is_left_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("mine", "utf-8")
    link.symlink_to(target)
    write_whole(link, "lopen's")
    assert not link.is_symlink()
    assert (target.read_text("utf-8"), link.read_text("utf-8")) == ("mine", "lopen's")


def test_content_and_name_reach_the_disk_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        there = (tmp_path / "plan.md").exists()
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        synced.append(f"{kind} {'after' if there else 'before'} the rename")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(tmp_path / "plan.md", "one")
    assert synced == ["file before the rename", "folder after the rename"]


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = tmp_path / "plan.md"
    write_whole(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target: object = os if where == "fsync" else Path
    monkeypatch.setattr(target, where, full)
    with pytest.raises(StorageError, match=r"plan\.md: No space left on device") as failed:
        write_whole(path, "new")
    assert "free some space" in failed.value.hint
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
