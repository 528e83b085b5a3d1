"""A finished session as a file: whole, read back alike, deleted from the database, its totals kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lopen.core.errors import StorageError
from lopen.core.files import store_bytes
from lopen.limits.sqlite_store import SqliteStore
from lopen.store.archives import (
    archive_session,
    archived_sessions,
    newest_archived,
    open_archive,
)
from lopen.store.database import Database, NewerSchema
from lopen.store.sessions import NoSuchSession, SessionStore
from tests.store.history import NOW, lived

ID = "calc-20260301-1"


@pytest.fixture
def store(database: Database) -> SessionStore:
    return SessionStore(database)


def rows(database: Database) -> dict[str, int]:
    """Rows by table, of the tables that hold any."""
    names = database.connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
    counts = {
        name["name"]: database.connection.execute(f"SELECT count(*) FROM {name['name']}").fetchone()[0]
        for name in names
    }
    return {name: count for name, count in counts.items() if count and name != "sqlite_sequence"}


def test_an_archived_session_reads_as_it_was(store: SessionStore) -> None:
    session = lived(store, ID)
    history, verdicts = list(store.events(ID)), store.verdicts(ID)
    budgets = {b.budget_id: b for b in SqliteStore(store.database).budgets()}

    path = archive_session(store, ID, NOW)

    assert path == store.archives / "2026-03-01" / f"{ID}.json.gz"
    back = open_archive(store.archives, ID)
    assert back.load(ID) == session
    assert list(back.events(ID)) == history
    assert back.verdicts(ID) == verdicts
    assert rows(back.database)["tool_calls"] == 3
    limits = SqliteStore(back.database)
    assert limits.budgets() == [budgets[f"session:{ID}"], budgets["task:calc-t1"]]
    assert [c.circuit_id for c in limits.circuits()] == [f"session:{ID}"]
    assert [a.alert_type for a in limits.alerts()] == ["warning_threshold"]


def test_nothing_of_it_stays_in_the_database_but_its_totals(store: SessionStore) -> None:
    lived(store, ID)
    lived(store, "calc-20260301-2", task="calc-t2")
    archive_session(store, ID, NOW)
    archive_session(store, "calc-20260301-2", NOW)
    assert rows(store.database) == {"archived": 2, "budgets": 1, "owner": 1, "spend": 3}
    limits = SqliteStore(store.database)
    assert {s.budget_id: (s.tokens, s.requests, s.cost_usd) for s in limits.spend()} == {
        "module:calc": (2_000, 2, 0.5),
        "session:archived": (2_000, 2, 0.5),
        "task:archived": (2_000, 2, 0.5),
    }


def test_ids_and_task_numbers_of_archived_sessions_are_not_given_again(store: SessionStore) -> None:
    lived(store, ID, task="calc-t41")
    archive_session(store, ID, NOW)
    assert [(a.session, a.tasks_done, a.tasks) for a in archived_sessions(store.database)] == [(ID, 1, 1)]
    assert newest_archived(store.database, "calc") == ID
    assert newest_archived(store.database, "tax") is None
    assert store.new_id("calc", NOW) == "calc-20260301-2"
    assert store.next_task_number("calc") == 42
    assert store.next_task_number("tax") == 1


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("written", [False, True])
def test_a_process_that_dies_while_archiving_leaves_the_session_whole(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    session = lived(store, ID)

    def dying(path: Path, data: bytes) -> None:
        if written:
            store_bytes(path, data)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("lopen.store.archives.store_bytes", dying)
        with pytest.raises(Crash):
            archive_session(store, ID, NOW)
    assert store.load(ID) == session
    archive_session(store, ID, NOW)
    assert len(list(store.archives.glob("*/*"))) == 1
    assert open_archive(store.archives, ID).load(ID) == session


@pytest.mark.parametrize("wanted", ["nothing-20260301-1", "../../etc/passwd"])
def test_what_has_no_archive_is_said_to_be_no_session(store: SessionStore, wanted: str) -> None:
    lived(store, ID)
    archive_session(store, ID, NOW)
    with pytest.raises(NoSuchSession):
        open_archive(store.archives, wanted)


def rewrite(path: Path, **changes: object) -> None:
    whole = json.loads(gzip.decompress(path.read_bytes())) | changes
    path.write_bytes(gzip.compress(json.dumps(whole).encode()))


@pytest.mark.parametrize("table", ["sqlite_master", "memos; DROP TABLE sessions"])
def test_an_archive_brings_only_its_own_tables(store: SessionStore, table: str) -> None:
    lived(store, ID)
    path = archive_session(store, ID, NOW)
    rewrite(path, tables={table: [{"a": 1}]})
    with pytest.raises(StorageError, match="cannot read"):
        open_archive(store.archives, ID)


def test_an_archive_of_another_version_is_named(store: SessionStore) -> None:
    lived(store, ID)
    path = archive_session(store, ID, NOW)
    rewrite(path, schema=999)
    with pytest.raises(NewerSchema, match="another version"):
        open_archive(store.archives, ID)
