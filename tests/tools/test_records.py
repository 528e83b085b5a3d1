"""The running session's rows: what another process writes beside them is no matter, what one writes to them is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.tools.forged_records import Records, RecordsForged
from lopen.workflow.session import Plan, Session
from lopen.workflow.task_tree import Component, Task, TaskTree

SESSION, OTHER = "m-20260301-1", "n-20260301-1"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.db")
    yield database
    database.close()


@pytest.fixture
def records(database: Database) -> Iterator[Records]:
    store = SessionStore(database)
    tree = TaskTree((Component("c", "core", tasks=(Task("m-t1", "One"),)),))
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for session in (Session(SESSION, "m", at, plan=Plan(tree=tree)), Session(OTHER, "n", at)):
        Journal(store, session, FakeClock(), redact=str).save(session)
    records = Records(database, SESSION, "m")
    yield records
    records.close()


def elsewhere(database: Database, sql: str) -> None:
    other = sqlite3.connect(database.path)
    other.execute(sql)
    other.commit()
    other.close()


def test_without_a_change_nothing_is_said(records: Records) -> None:
    for _ in range(2):
        records.begin()
        assert records.check() == ()


def test_what_other_processes_write_beside_the_session_stays(records: Records, database: Database) -> None:
    records.begin()
    elsewhere(database, f"UPDATE sessions SET status = 'paused' WHERE id = '{OTHER}'")
    elsewhere(database, "INSERT INTO memos VALUES ('a', 'b')")
    assert records.check() == ()
    assert database.connection.execute("SELECT count(*) FROM memos").fetchone()[0] == 1


def test_a_budget_that_was_extended_is_told_and_stays(records: Records, database: Database) -> None:
    records.begin()
    elsewhere(database, "INSERT INTO budgets VALUES ('module:m', 'now', '{}')")
    assert records.check() == ("budgets (left as they are)",)
    assert database.connection.execute("SELECT count(*) FROM budgets").fetchone()[0] == 1


@pytest.mark.parametrize(
    "sql",
    [
        f"UPDATE sessions SET status = 'complete' WHERE id = '{SESSION}'",
        f"INSERT INTO verdicts VALUES ('{SESSION}', 'h', 'task', 't', 'now', '{{}}')",
        "DELETE FROM tasks",
        f"DELETE FROM sessions WHERE id = '{SESSION}'",
        "PRAGMA foreign_keys = ON",
    ],
)
def test_the_session_s_rows_are_what_they_were(records: Records, database: Database, sql: str) -> None:
    def rows() -> list[tuple[object, ...]]:
        every = "SELECT 's', id, status, body FROM sessions UNION ALL SELECT 't', id, state, body FROM tasks"
        verdicts = " UNION ALL SELECT 'v', evidence_hash, subject, body FROM verdicts ORDER BY 1, 2"
        return [tuple(row) for row in database.connection.execute(every + verdicts)]

    before = rows()
    records.begin()
    elsewhere(database, sql)
    assert bool(records.check()) == (not sql.startswith("PRAGMA"))
    assert rows() == before
    records.begin()
    assert records.check() == ()


def test_a_checkpoint_of_another_process_is_no_matter(records: Records, database: Database) -> None:
    elsewhere(database, "INSERT INTO memos VALUES ('a', 'b')")
    records.begin()
    other = sqlite3.connect(database.path)
    other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    other.close()
    assert records.check() == ()


def test_tables_that_are_added_end_the_run(records: Records, database: Database) -> None:
    records.begin()
    elsewhere(database, "CREATE VIEW v AS SELECT 1")
    with pytest.raises(RecordsForged, match="is not trustworthy"):
        records.check()
