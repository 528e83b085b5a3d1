"""Looking at the same folders again and again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lopen.storage import seen
from lopen.storage.seen import Kinds, kinds_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one entry of each kind, that has long been as it is."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("folder")
    return tmp_path


def test_a_folder_is_told_by_kinds_and_links_are_not_followed(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    found = kinds_in(str(folder))
    assert (found.folders, found.links, sorted(found.files)) == (("folder",), ("link",), ["file", "pipe"])


def test_what_changed_since_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "_SETTLED_NS", -1)  # as if it had been so for long
    listings: list[str] = []
    real = seen._kinds

    def listed(path: str) -> Kinds:
        listings.append(path)
        return real(path)

    monkeypatch.setattr(seen, "_kinds", listed)
    assert kinds_in(str(folder)) == kinds_in(str(folder))
    assert listings == [str(folder)]

    (folder / "file").unlink()
    (folder / "file").mkdir()
    os.utime(folder, (0, 0))

    assert sorted(kinds_in(str(folder)).folders) == ["file", "folder"]


def test_a_folder_that_changed_a_moment_ago_is_not_relied_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "_SETTLED_NS", 10**15)
    kinds_in(str(folder))
    assert str(folder) not in seen._KINDS


def test_no_folder_and_a_link_to_one_hold_nothing(folder: Path) -> None:
    assert kinds_in(str(folder / "none")) == kinds_in(str(folder / "link")) == Kinds()
