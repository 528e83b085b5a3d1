"""Looking at the same folders again and again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lopen.core import stat_cache
from lopen.core.stat_cache import Kinds, kinds_in, settled


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
    monkeypatch.setattr(stat_cache, "settled", lambda *_: True)  # as if it had been so for long
    listings: list[str] = []
    real = stat_cache._kinds

    def listed(path: str) -> Kinds:
        listings.append(path)
        return real(path)

    monkeypatch.setattr(stat_cache, "_kinds", listed)
    assert kinds_in(str(folder)) == kinds_in(str(folder))
    assert listings == [str(folder)]

    (folder / "file").unlink()
    (folder / "file").mkdir()
    os.utime(folder, (0, 0))

    assert sorted(kinds_in(str(folder)).folders) == ["file", "folder"]


def test_a_folder_that_changed_a_moment_ago_is_not_relied_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stat_cache, "settled", lambda *_: False)
    kinds_in(str(folder))
    assert str(folder) not in stat_cache._KINDS


def test_what_changes_while_it_is_read_is_not_relied_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = folder.lstat().st_ctime_ns + 1
    real = stat_cache._kinds

    def slowly(path: str) -> Kinds:
        nonlocal now
        found, now = real(path), now + 10**12
        return found

    monkeypatch.setattr(time, "time_ns", lambda: now)
    monkeypatch.setattr(stat_cache, "_kinds", slowly)
    kinds_in(str(folder))
    assert str(folder) not in stat_cache._KINDS


@pytest.mark.parametrize(
    ("changed", "looked", "expected"),
    [
        (5_123_000_000, 5_140_000_000, False),
        (5_123_000_000, 5_144_000_000, True),
        (4_000_000_000, 5_990_000_000, False),  # whole seconds: perhaps nothing finer is kept there
        (4_000_000_000, 6_030_000_000, True),
        (9_000_000_001, 1_000_000_000, False),  # another machine's clock
    ],
)
def test_times_are_relied_on_once_a_later_change_would_have_another(
    changed: int, looked: int, expected: bool
) -> None:
    assert settled(changed, looked) is expected


def test_no_folder_and_a_link_to_one_hold_nothing(folder: Path) -> None:
    (folder / "folder" / "inside").touch()
    assert kinds_in(str(folder / "none")) == kinds_in(str(folder / "link")) == Kinds()
