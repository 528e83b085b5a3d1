"""What a person wrote is told from what a repository brought along."""

from __future__ import annotations

import os
import pwd
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from lopen.claude_hooks.entry import open_database
from lopen.core.person import data_folder, holds, sealed, unkept
from lopen.store.database import Database, ForeignDatabase


def as_somebody_else(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))


def test_a_seal_holds_for_exactly_what_was_sealed() -> None:
    seal = sealed("approval", "calc", "text")
    assert holds(seal, "approval", "calc", "text")
    for other in (("approval", "calc", "texts"), ("approval", "calctext"), ("approval", "calc", "text", "")):
        assert not holds(seal, *other)
    assert not holds(None, "approval")
    assert not holds("", "approval")


def test_the_key_lies_in_the_person_s_own_folder_and_outlives_the_process() -> None:
    code = "from lopen.core.person import sealed; print(sealed('x'))"
    path = Path(__file__).parents[1]
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(path)},
    )
    assert said.stdout.strip() == sealed("x")
    key = Path(data_folder(), "seal.key")
    assert key.stat().st_mode & 0o777 == 0o600
    assert os.listdir(data_folder()) == ["seal.key"]
    assert unkept() == ""


def test_a_key_below_the_current_folder_is_not_the_person_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository could bring one along."""
    own = sealed("x")
    planted = tmp_path / "data" / "lopen" / "seal.key"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"k" * 32)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(Path(data_folder()).parent))
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert Path(data_folder()) == Path(os.environ["HOME"], ".local/share/lopen")
    seal = sealed("x")
    assert seal != own
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert seal != sealed("x")


def test_without_a_home_folder_the_key_is_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nobody: dict[int, pwd.struct_passwd] = {}
    monkeypatch.setattr(pwd, "getpwuid", nobody.__getitem__)
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", "home")
    assert "your home folder is not known" in unkept()
    assert holds(sealed("x"), "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["short"])
def test_what_is_no_key_keeps_nothing_and_is_said(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_somebody_else(monkeypatch, tmp_path)
    (tmp_path / "lopen").mkdir()
    (tmp_path / "lopen" / "seal.key").write_text(content)
    assert "not a key" in unkept()
    assert holds(sealed("x"), "x")


def planted(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database that somebody else's lopen made."""
    with monkeypatch.context() as patched:
        as_somebody_else(patched, path.parent / "somebody")
        Database(path).close()
    return path


def test_a_database_that_came_along_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = planted(tmp_path / "state.db", monkeypatch)
    before = path.read_bytes()
    with pytest.raises(ForeignDatabase, match="not created by you"):
        Database(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE sessions (id TEXT)",
        "CREATE TABLE owner (name TEXT NOT NULL, seal TEXT NOT NULL)",
        "CREATE VIEW owner AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT count(*) AS name, '' AS seal FROM n",
    ],
)
def test_a_forged_one_is_not_opened_and_computes_nothing(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as forged:
        forged.execute(sql)
        forged.execute("PRAGMA user_version=3")
    with pytest.raises(ForeignDatabase):
        Database(path)


def test_a_hook_sets_aside_what_came_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = planted(tmp_path / "state.db", monkeypatch)
    database, [said] = open_database(path, 1.0)
    database.close()
    assert "counting begins anew" in said
    Database(path).close()
    assert [p.name.split("-", 1)[1] for p in (tmp_path / "corrupted").iterdir()] == ["state.db"]
