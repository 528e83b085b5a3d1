"""A session's part of `state.db` as rows of text: the rows that changed since the last time, and the way back.

Temporary triggers of the connection note each changed row, so that a checkpoint costs the same at any turn.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from lopen.store.database import Database

KEPT = (
    *("sessions", "events", "tool_calls", "verdicts", "verifications", "test_runs", "conversations"),
    *("criteria", "budgets", "spend", "reservations", "circuits", "alerts", "incidents", "memos", "dropped"),
)
_BYTES = "bytes:"  # how a binary value begins


class ChangedRows:
    """The rows of a connection that changed; those of other processes are not seen."""

    def __init__(self, database: Database) -> None:
        self._connection = database.connection
        self._keys = {table: _key(self._connection, table) for table in KEPT}
        execute = self._connection.execute
        execute("CREATE TEMP TABLE changed_rows (kind TEXT, row_key TEXT, PRIMARY KEY (kind, row_key))")
        for table, columns in self._keys.items():
            for event, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
                key = f"json_array({', '.join(f'{row}.{column}' for column in columns)})"
                execute(
                    f"CREATE TEMP TRIGGER note_{table}_{event} AFTER {event} ON main.{table} BEGIN"  # noqa: S608 - fixed words only
                    f" INSERT INTO changed_rows SELECT '{table}', {key} WHERE NOT EXISTS"  # the outer statement
                    f" (SELECT 1 FROM changed_rows WHERE kind = '{table}' AND row_key = {key}); END"  # says OR what
                )

    def note_all(self) -> None:
        """Take every row for changed: the first checkpoint of a build that began without."""
        for table, columns in self._keys.items():
            self._connection.execute(
                f"INSERT OR IGNORE INTO changed_rows SELECT '{table}', json_array({', '.join(columns)}) FROM {table}"  # noqa: S608 - fixed words only
            )

    def take(self) -> list[tuple[str, str, str | None]]:
        """Return the changed rows as kind, key and body, None for one that is gone; they stay noted until `forget`."""
        noted = self._connection.execute("SELECT kind, row_key FROM changed_rows").fetchall()
        return [(kind, key, self._body(kind, key)) for kind, key in noted]

    def forget(self, rows: Iterable[tuple[str, str, str | None]]) -> None:
        """Forget rows that are kept elsewhere by now."""
        for kind, key, _ in rows:
            self._connection.execute("DELETE FROM changed_rows WHERE kind = ? AND row_key = ?", (kind, key))

    def _body(self, table: str, key: str) -> str | None:
        where = " AND ".join(f"{column} = ?" for column in self._keys[table])
        sql = f"SELECT * FROM {table} WHERE {where}"  # noqa: S608 - fixed words only
        row = self._connection.execute(sql, json.loads(key)).fetchone()
        return None if row is None else json.dumps({name: _as_text(row[name]) for name in row.keys()})  # noqa: SIM118 - a Row


def restore(database: Database, rows: Iterable[tuple[str, str]]) -> None:
    """Write kept rows into an empty database."""
    order = {table: at for at, table in enumerate(KEPT)}
    with database.transaction() as connection:
        for kind, body in sorted(rows, key=lambda row: order[row[0]]):
            values = {name: _as_value(value) for name, value in json.loads(body).items()}
            columns, marks = ", ".join(values), ", ".join("?" * len(values))
            sql = f"INSERT OR REPLACE INTO {kind} ({columns}) VALUES ({marks})"  # noqa: S608 - fixed words only
            connection.execute(sql, list(values.values()))


def _key(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Return the columns of a table's primary key."""
    columns: Iterator[sqlite3.Row] = connection.execute(f"PRAGMA main.table_info({table})")
    return tuple(str(c["name"]) for c in sorted(columns, key=lambda c: int(c["pk"])) if c["pk"])


def _as_text(value: Any) -> Any:
    return f"{_BYTES}{base64.b64encode(value).decode()}" if isinstance(value, bytes) else value


def _as_value(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_BYTES):
        return base64.b64decode(value.removeprefix(_BYTES))
    return value
