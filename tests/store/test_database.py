"""The file itself: opened, migrated, one transaction that is all or nothing at every depth."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lopen.core.errors import ExitCode, Stopped, StorageError
from lopen.store import SCHEMA
from lopen.store.database import Database, UnreadableDatabase


def rows(database: Database) -> list[str]:
    """What the tests wrote."""
    return [r["key"] for r in database.connection.execute("SELECT key FROM memos ORDER BY key")]


def put(database: Database, key: str) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO memos VALUES (?, '')", (key,))


def test_a_new_file_holds_every_table_and_survives_a_power_cut(database: Database) -> None:
    pragma = {
        name: database.connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("user_version", "journal_mode", "synchronous", "foreign_keys")
    }
    assert pragma == {"user_version": SCHEMA, "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_second_connection_in_a_process_loses_nothing_of_the_first(tmp_path: Path) -> None:
    """SQLite's locks belong to the process: closing any descriptor of the file would release them."""
    path = tmp_path / "state.db"
    with closing(Database(path)) as first:
        Database(path).close()
        other = f"from lopen.store.database import Database; from pathlib import Path; d = Database(Path({str(path)!r}))"
        subprocess.run(
            [sys.executable, "-c", f"{other}; rows = d.version(); d.close()"], check=True, timeout=60
        )
        put(first, "kept")
        with closing(Database(path)) as second:
            assert rows(second) == ["kept"]
    with closing(Database(path)) as later:
        assert rows(later) == ["kept"]


def test_what_is_no_database_is_unreadable_and_named(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"certainly no database, but long enough to be looked at " * 100)
    with pytest.raises(UnreadableDatabase, match=r"state\.db: file is not a database"):
        Database(path)


def test_a_writer_that_does_not_let_go_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(Database(path)) as one, closing(Database(path, timeout_s=0.05)) as other:
        with one.transaction(), pytest.raises(StorageError, match="locked") as failed, other.transaction():
            pass
        assert "another process" in failed.value.hint
        assert rows(other) == []
        put(other, "later")
        assert rows(one) == ["later"]


def test_many_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    code = (
        "import sys\nfrom pathlib import Path\nfrom lopen.store.database import Database\n"
        "sys.stdin.read()\nd = Database(Path(sys.argv[1]))\n"
        "with d.transaction() as c: c.execute('INSERT INTO memos VALUES (?, ?)', (sys.argv[2], ''))\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(n)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for n in range(4)
    ]
    errors = []
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
    for process in started:
        with process:
            assert process.stderr is not None
            errors.append(process.stderr.read())
    assert errors == [b""] * 4
    with closing(Database(path)) as database:
        assert rows(database) == ["0", "1", "2", "3"]


def test_on_a_full_disk_nothing_of_the_transaction_stands(database: Database) -> None:
    pages = database.connection.execute("PRAGMA page_count").fetchone()[0]
    database.connection.execute(f"PRAGMA max_page_count={pages + 2}")
    done: list[str] = []

    def fill() -> None:
        with database.transaction() as connection:
            put(database, "a")
            database.on_commit(lambda: done.append("committed"))
            database.on_rollback(lambda: done.append("undone"))
            connection.execute("INSERT INTO memos VALUES ('big', zeroblob(1000000))")

    with pytest.raises(StorageError, match="full") as failed:
        fill()
    assert "free some space" in failed.value.hint
    assert done == ["undone"]
    assert rows(database) == []


def test_a_signal_right_behind_the_commit_lets_it_stand(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    inner = type(database.connection).execute

    def stopped_after_commit(self: sqlite3.Connection, sql: str, parameters: object = ()) -> sqlite3.Cursor:
        cursor = inner(self, sql, parameters)  # type: ignore[arg-type]  # passed on as it came
        if sql == "COMMIT":
            raise Stopped(ExitCode.TERMINATED)
        return cursor

    monkeypatch.setattr(type(database.connection), "execute", stopped_after_commit)

    def commit() -> None:
        with database.transaction():
            put(database, "a")
            database.on_commit(lambda: done.append("committed"))
            database.on_rollback(lambda: done.append("undone"))

    with pytest.raises(Stopped):
        commit()
    monkeypatch.undo()
    assert rows(database) == ["a"]
    assert done == ["committed"]


# A plan of nested transactions: text writes a row; a list is a nested transaction, which fails where told
PLANS = st.recursive(
    st.just("row"), lambda inner: st.tuples(st.booleans(), st.lists(inner, max_size=4)), max_leaves=12
)


@given(st.lists(PLANS, max_size=4), st.booleans())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_and_memory_agree_however_transactions_nest_and_fail(
    database: Database, plans: list[object], outer_fails: bool
) -> None:
    with database.transaction() as connection:
        connection.execute("DELETE FROM memos")
    numbers = count()
    memory: list[str] = []
    heard: list[str] = []

    def write() -> list[str]:
        key = f"{next(numbers):04}"
        put(database, key)
        memory.append(key)
        database.on_rollback(lambda: memory.remove(key))
        database.on_commit(lambda: heard.append(key))
        return [key]

    def play(plan: object) -> list[str]:
        """Do it; the keys that are to stand."""
        if not isinstance(plan, tuple):
            return write()
        fails, parts = plan
        kept: list[str] = []
        with suppress(ZeroDivisionError), database.transaction():
            for part in parts:
                kept += play(part)
            if fails:
                raise ZeroDivisionError
        return [] if fails else kept

    expected = play((outer_fails, plans))
    assert rows(database) == memory == heard == expected
