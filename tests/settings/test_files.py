"""Files that lie in wait are refused; writing is whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lopen.core.errors import WrongUsage
from lopen.core.files import MAX_BYTES, read_foreign, read_own


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_foreign(tmp_path / "none") is None
    assert read_own(tmp_path / "no" / "none") is None


def test_a_link_out_of_a_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "config.toml").symlink_to(tmp_path / "secret")
    with pytest.raises(WrongUsage, match="symbolic link"):
        read_foreign(tmp_path / "config.toml")
    assert read_own(tmp_path / "config.toml") == "s"


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "config.toml").write_text("")
    (tmp_path / ".lopen").symlink_to(tmp_path / "real")
    with pytest.raises(WrongUsage, match="symbolic link"):
        read_foreign(tmp_path / ".lopen" / "config.toml")


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(WrongUsage, match="not a regular file"):
        read_foreign(tmp_path / "config.toml")


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(WrongUsage, match="not a regular file"):
        read_foreign(tmp_path / "config.toml")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(WrongUsage, match="larger than 256 KB"):
        read_foreign(tmp_path / "config.toml")


def test_bytes_that_are_no_text_name_their_line(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(WrongUsage, match="line 2"):
        read_foreign(tmp_path / "config.toml")
