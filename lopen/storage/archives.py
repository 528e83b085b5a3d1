"""Finished sessions as files: `session_archives/<date>/<id>.json.gz`, all rows that speak of a session, and back.

An archive is the session's rows as they were, table by table, with the number of their schema. It is read
into a database in memory that is then brought up to date, so that whatever shows a session shows an
archived one alike. The file is written durably before the rows are deleted, under a name that does not
depend on when: a process that dies in between leaves both, and the next one does the same again.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lopen.base.atomic_files import plain_name, store_bytes
from lopen.base.errors import StorageError
from lopen.storage.database import Database, NewerSchema, migrations
from lopen.storage.numbering import note_deleted
from lopen.storage.segments import KINDS, segments
from lopen.storage.sessions import NoSuchSession, SessionStore
from lopen.workflow.session import Session
from lopen.workflow.task_tree import progress

ENDING = ".json.gz"
TOTALS = "archived"  # `session:archived` and `task:archived` keep the running totals of what went

_BY_SESSION = ("components", "tasks", "events", "tool_calls", "verdicts", "habits", "reservations")
_BY_LIMIT = {  # what the limits keep of the session and its tasks
    "budgets": "budget_id",
    "spend": "budget_id",
    "alerts": "budget_id",
    "circuits": "circuit_id",
    "incidents": "circuit_id",
    "dropped": "owner",
    "memos": "key",
}
_OF_OLDER_SCHEMAS = ("tool_counts",)  # tables that older archives hold and a migration drops


@dataclass(frozen=True, slots=True)
class Archived:
    """One line about an archived session."""

    session: str
    module: str
    created_at: datetime
    archived_at: datetime
    tasks_done: int
    tasks: int


def archive(store: SessionStore, session_id: str, now: datetime) -> Path:
    """Write the session to its archive and delete its rows; the file. Only for finished ones."""
    database, folder = store.database, store.archives
    session = store.load(session_id)
    if not session.finished:
        raise StorageError(f"{session_id} is not finished; it is not archived")
    path = folder / session.created_at.date().isoformat() / plain_name(f"{session_id}{ENDING}")
    with database.transaction() as connection:
        ids = limit_ids(session_id, [task.id for task in session.tree.tasks])
        tables = dict(_rows_of(connection, session_id, ids))
        schema = connection.execute("PRAGMA user_version").fetchone()[0]
        whole = {"session": session_id, "schema": schema, "archived_at": now.isoformat(), "tables": tables}
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
        store_bytes(path, gzip.compress(text.encode("utf-8", "surrogatepass"), 6, mtime=0))
        done = progress(session.tree)
        figures = {"tasks_done": done.tasks_done, "tasks": done.tasks}
        connection.execute(
            "INSERT OR REPLACE INTO archived VALUES (?, ?, ?, ?, ?, ?)",
            (
                session_id,
                session.module,
                session.created_at.isoformat(),
                now.isoformat(),
                store.highest_task(session),
                json.dumps(figures),
            ),
        )
        forget_limits(connection, ids)
        store.delete(session_id)
    return path


def _rows_of(
    connection: sqlite3.Connection, session_id: str, limits: list[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    def rows(table: str, column: str, values: list[str]) -> list[dict[str, Any]]:
        marks = ", ".join("?" * len(values))
        sql = f"SELECT * FROM {table} WHERE {column} IN ({marks})"  # noqa: S608 - fixed words only
        return [dict(row) for row in connection.execute(sql, values)]

    yield "sessions", rows("sessions", "id", [session_id])
    for table in _BY_SESSION:
        yield table, rows(table, "session", [session_id])
    for table, column in _BY_LIMIT.items():
        yield table, [row for ids in _portions(limits) for row in rows(table, column, ids)]


def limit_ids(session_id: str, tasks: list[str]) -> list[str]:
    """What the limits call a session and its tasks."""
    own = f"session:{session_id}"
    return [session_id, own, f"agents:{own}", f"hooks:{session_id}", *(f"task:{task}" for task in tasks)]


def _portions(ids: list[str], size: int = 500) -> Iterator[list[str]]:
    """SQLite takes a bounded number of values in one statement."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


_FOLD_SPEND = """INSERT INTO spend
SELECT substr(budget_id, 1, instr(budget_id, ':')) || ?, agent, model, input_tokens, output_tokens,
    cache_write_tokens, cache_read_tokens, requests, tokens, cost_usd, unpriced_tokens
FROM spend WHERE budget_id = ?
ON CONFLICT DO UPDATE SET
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
    requests = requests + excluded.requests,
    tokens = tokens + excluded.tokens,
    cost_usd = cost_usd + excluded.cost_usd,
    unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens"""


def fold_spend(connection: sqlite3.Connection, budget_id: str) -> None:
    """Add what was spent of a budget to the running totals, and begin it anew."""
    connection.execute(_FOLD_SPEND, (TOTALS, budget_id))
    connection.execute("DELETE FROM spend WHERE budget_id = ?", (budget_id,))


def forget_limits(connection: sqlite3.Connection, ids: list[str]) -> None:
    """Delete what the limits keep of these; running totals (tokens, cost) are added up first."""
    for one in ids:
        fold_spend(connection, one)
        for table, column in _BY_LIMIT.items():
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (one,))  # noqa: S608 - fixed words only


def archived(database: Database) -> list[Archived]:
    """Every archived session, newest first."""
    found = []
    for row in database.connection.execute("SELECT * FROM archived ORDER BY created_at DESC, session DESC"):
        figures = json.loads(row["body"])
        found.append(
            Archived(
                row["session"],
                row["module"],
                datetime.fromisoformat(row["created_at"]),
                datetime.fromisoformat(row["archived_at"]),
                figures["tasks_done"],
                figures["tasks"],
            )
        )
    return found


def newest_archived(database: Database, module: str) -> str | None:
    """The id of the module's newest archived session."""
    row = database.connection.execute(
        "SELECT session FROM archived WHERE module=? ORDER BY created_at DESC, session DESC LIMIT 1",
        (module,),
    ).fetchone()
    return row["session"] if row else None


def archive_path(folder: Path, session_id: str) -> Path | None:
    """The session's archive below `folder`, if there is one."""
    name = f"{session_id}{ENDING}"
    if Path(name).name != name or not folder.is_dir():
        return None
    return next((day / name for day in sorted(folder.iterdir()) if (day / name).is_file()), None)


def read_back(folder: Path, session_id: str) -> SessionStore:
    """A store in memory that holds the archived session alone; `NoSuchSession` where there is no archive."""
    path = archive_path(folder, session_id)
    if path is None:
        raise NoSuchSession(f"there is no session {session_id}", hint="lopen session list shows them")
    try:
        whole = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "surrogatepass"))
        if whole["schema"] > migrations()[-1][0]:
            raise NewerSchema(f"{path} was written by a newer lopen", hint="update lopen")
        database = Database(Path(":memory:"), schema=whole["schema"])
        with database.transaction() as connection:
            for table, rows in whole["tables"].items():
                _insert(connection, table, rows)
        database.migrate()
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, sqlite3.Error) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    return SessionStore(database, folder)


def _insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    if table not in ("sessions", *_BY_SESSION, *_BY_LIMIT, *_OF_OLDER_SCHEMAS):
        raise ValueError(f"an archive holds no table {table}")
    for row in rows:
        columns = ", ".join(f'"{name}"' for name in row if name.isidentifier())
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))  # noqa: S608 - names checked above


def erase(store: SessionStore, session: Session) -> None:
    """Delete everything kept of a session: rows, archive and segments. Running totals stay."""
    with store.database.transaction() as connection:
        forget_limits(connection, limit_ids(session.id, [task.id for task in session.tree.tasks]))
        connection.execute("DELETE FROM archived WHERE session=?", (session.id,))
        store.delete(session.id)
        note_deleted(connection, session.id)
    paths = [path for kind in KINDS for _, path in segments(store.archives, session.id, kind)]
    whole = archive_path(store.archives, session.id)
    for path in [*paths, *([whole] if whole else [])]:
        path.unlink(missing_ok=True)
