"""Archives of finished sessions: `session_archives/<date>/<id>.json.gz`, with all rows of a session.

An archive holds the session's rows, table by table. It is read into a database in memory, so that every command
shows an archived session like any other. The file is
written durably before the rows are deleted, under a name that does not depend on the time. A process that dies
in between leaves both, and the next one repeats the work.
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

from lopen.core.errors import StorageError
from lopen.core.files import plain_name, store_bytes
from lopen.store import SCHEMA
from lopen.store.caps import add_spend_to_totals
from lopen.store.database import Database, NewerSchema
from lopen.store.journal import take_requests
from lopen.store.sessions import NoSuchSession, SessionStore, highest_task_number, reserve_id
from lopen.workflow.session import Session
from lopen.workflow.task_tree import progress

SUFFIX = ".json.gz"

_BY_SESSION = (
    "events",
    "tool_calls",
    "verifications",
    "test_runs",
    "verdicts",
    "reservations",
)
_BY_LIMIT = {  # rows of the limits of a session and its tasks
    "budgets": "budget_id",
    "spend": "budget_id",
    "alerts": "budget_id",
    "circuits": "circuit_id",
    "incidents": "circuit_id",
    "dropped": "owner",
    "memos": "key",
}


@dataclass(frozen=True, slots=True)
class ArchivedSession:
    """Summary of an archived session."""

    session: str
    module: str
    created_at: datetime
    archived_at: datetime
    tasks_done: int
    tasks: int
    finished: bool


def archive_session(store: SessionStore, session_id: str, now: datetime, *, unfinished: bool = False) -> Path:
    """Write a session to its archive and delete its rows; return the file. `unfinished`: also one that could go on."""
    database, folder = store.database, store.archives
    session = store.load(session_id)
    if not (session.finished or unfinished):
        raise StorageError(f"cannot archive {session_id}: it is not finished")
    path = folder / session.created_at.date().isoformat() / plain_name(f"{session_id}{SUFFIX}")
    with database.transaction() as connection:
        ids = limit_ids(session_id, [task.id for task in session.tree.tasks])
        tables = dict(_rows_of(connection, session_id, ids))
        contents = {"session": session_id, "schema": SCHEMA, "archived_at": now.isoformat(), "tables": tables}
        text = json.dumps(contents, ensure_ascii=False, separators=(",", ":"))
        store_bytes(path, gzip.compress(text.encode("utf-8", "surrogatepass"), 6, mtime=0))
        done = progress(session.tree)
        figures = {"tasks_done": done.tasks_done, "tasks": done.tasks, "finished": session.finished}
        connection.execute(
            "INSERT OR REPLACE INTO archived VALUES (?, ?, ?, ?, ?, ?)",
            (
                session_id,
                session.module,
                session.created_at.isoformat(),
                now.isoformat(),
                highest_task_number(session.module, (task.id for task in session.tree.tasks)),
                json.dumps(figures),
            ),
        )
        delete_limit_rows(connection, ids)
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
        yield table, rows(table, column, limits)


def limit_ids(session_id: str, tasks: list[str]) -> list[str]:
    """Return the ids of the limits of a session and its tasks."""
    own = f"session:{session_id}"
    return [session_id, own, f"agents:{own}", f"hooks:{session_id}", *(f"task:{task}" for task in tasks)]


def delete_limit_rows(connection: sqlite3.Connection, ids: list[str]) -> None:
    """Delete the rows of these limits, after adding their tokens and cost to the running totals."""
    for limit_id in ids:
        add_spend_to_totals(connection, limit_id)
        for table, column in _BY_LIMIT.items():
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (limit_id,))  # noqa: S608 - fixed words only


def archived_sessions(database: Database) -> list[ArchivedSession]:
    """Return every archived session, newest first."""
    found = []
    for row in database.connection.execute("SELECT * FROM archived ORDER BY created_at DESC, session DESC"):
        figures = json.loads(row["body"])
        found.append(
            ArchivedSession(
                row["session"],
                row["module"],
                datetime.fromisoformat(row["created_at"]),
                datetime.fromisoformat(row["archived_at"]),
                figures["tasks_done"],
                figures["tasks"],
                figures.get("finished", True),
            )
        )
    return found


def newest_archived(database: Database, module: str) -> str | None:
    """Return the id of the module's newest finished session in the archive, or None."""
    return next((a.session for a in archived_sessions(database) if a.module == module and a.finished), None)


def archive_path(folder: Path, session_id: str) -> Path | None:
    """Return the session's archive below `folder`, or None."""
    name = f"{session_id}{SUFFIX}"
    if Path(name).name != name or not folder.is_dir():
        return None
    return next((day / name for day in sorted(folder.iterdir()) if (day / name).is_file()), None)


def open_archive(folder: Path, session_id: str) -> SessionStore:
    """Return a store in memory that holds only the archived session.

    Raises:
        NoSuchSession: there is no archive of this session.
        StorageError: the archive is damaged.
    """
    path = archive_path(folder, session_id)
    if path is None:
        raise NoSuchSession(f"there is no session {session_id}", hint="lopen session list shows them")
    try:
        contents = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "surrogatepass"))
        if contents["schema"] != SCHEMA:
            raise NewerSchema(f"another version of lopen wrote {path}", hint="read it with that version")
        database = Database(Path(":memory:"))
        with database.transaction() as connection:
            for table, rows in contents["tables"].items():
                _insert(connection, table, rows)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, sqlite3.Error) as error:
        raise StorageError(f"cannot read {path}: {error}") from error
    return SessionStore(database, folder)


def _insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    if table not in ("sessions", *_BY_SESSION, *_BY_LIMIT):
        raise ValueError(f"unexpected table in an archive: {table}")
    for row in rows:
        columns = ", ".join(f'"{name}"' for name in row if name.isidentifier())
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))  # noqa: S608 - names checked above


def erase_session(store: SessionStore, session: Session) -> None:
    """Delete a session's rows and archive. Running totals stay."""
    with store.database.transaction() as connection:
        delete_limit_rows(connection, limit_ids(session.id, [task.id for task in session.tree.tasks]))
        connection.execute("DELETE FROM archived WHERE session=?", (session.id,))
        take_requests(store.database, session.id)
        store.delete(session.id)
        reserve_id(connection, session.id)
    if archive := archive_path(store.archives, session.id):
        archive.unlink(missing_ok=True)
