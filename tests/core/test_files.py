"""Writing a whole file: all of it, or nothing and nothing left lying about."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from lopen.core.errors import StorageError
from lopen.core.files import create_file, replace_linked, store_text


def test_a_file_is_made_with_its_folders_and_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "plan.md"
    store_text(path, "one\r\ntwo\n")
    assert path.read_bytes() == b"one\r\ntwo\n", "line ends are the caller's"
    store_text(path, "three")
    assert path.read_text("utf-8") == "three"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_link_is_replaced_and_what_it_leads_to_is_left_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("mine", "utf-8")
    link.symlink_to(target)
    store_text(link, "lopen's")
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
    store_text(tmp_path / "plan.md", "one")
    assert synced == ["file before the rename", "folder after the rename"]


@pytest.mark.parametrize("where", ["fsync", "rename"])
def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = tmp_path / "plan.md"
    store_text(path, "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, where, full)
    with pytest.raises(StorageError, match=r"plan\.md: No space left on device") as failed:
        store_text(path, "new")
    assert "free some space" in failed.value.hint
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_there_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "key"
    create_file(str(path), b"one")
    create_file(str(path), b"two")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_linked_file_stays_a_link_and_keeps_its_permissions(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    replace_linked(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    replace_linked(tmp_path / "other", b"new", mode=0o604)
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o604
