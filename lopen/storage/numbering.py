"""Numbers of sessions and tasks: given once, whatever became of what had them. Commits carry them for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime


def session_id(connection: sqlite3.Connection, module: str, at: datetime) -> str:
    """`<module>-YYYYMMDD-<n>`, n beyond that of every session of that day, archived and deleted ones too."""
    stem = f"{module}-{at:%Y%m%d}-"
    rows = connection.execute(
        "SELECT id FROM sessions WHERE module=?1 AND substr(id, 1, ?2) = ?3"
        " UNION SELECT session FROM archived WHERE module=?1 AND substr(session, 1, ?2) = ?3",
        (module, len(stem), stem),
    )
    taken = [int(n) for row in rows if (n := row["id"][len(stem) :]).isdigit()]
    return f"{stem}{max([*taken, _last_deleted(connection, stem)]) + 1}"


def note_deleted(connection: sqlite3.Connection, session: str) -> None:
    """Keep that the id was given: another session must not take the first one's commits for its own."""
    stem, dash, number = session.rpartition("-")
    last = max(int(number), _last_deleted(connection, stem + dash))
    connection.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (f"deleted:{stem}{dash}", str(last)))


def _last_deleted(connection: sqlite3.Connection, stem: str) -> int:
    row = connection.execute("SELECT body FROM memos WHERE key=?", (f"deleted:{stem}",)).fetchone()
    return int(row["body"]) if row else 0


def task_number(connection: sqlite3.Connection, module: str) -> int:
    """The first number no task of the module has had, over all its sessions, archived ones too."""
    rows = connection.execute(
        "SELECT t.id FROM tasks t JOIN sessions s ON s.id = t.session WHERE s.module=?", (module,)
    )
    gone = connection.execute("SELECT max(highest_task) FROM archived WHERE module=?", (module,)).fetchone()[
        0
    ]
    return max(highest(module, (row["id"] for row in rows)), gone or 0) + 1


def highest(module: str, tasks: Iterable[str]) -> int:
    """The highest number among task ids `<module>-t<n>`."""
    stem = f"{module}-t"
    return max((int(n) for task in tasks if (n := task.removeprefix(stem)).isdigit()), default=0)
