"""A session's events as JSON lines, read back without building them: a line is that of `Recorded.to_json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from lopen.store.sessions import SessionStore


class EventLine(NamedTuple):
    """One event of a session: its number, which grows over all sessions, and its JSON object on one line.

    A number of 0 means that it is not recorded.
    """

    seq: int
    session: str
    text: str


def newest_event(store: SessionStore) -> int:
    """Return the number of the newest event of any session; 0 if there are none."""
    row = store.database.connection.execute("SELECT seq FROM sqlite_sequence WHERE name='events'").fetchone()
    return int(row[0]) if row else 0


def project_lines(store: SessionStore, *, after: int, limit: int) -> list[EventLine]:
    """Return the events of all sessions after number `after` that are still in the database, in order."""
    rows = store.database.connection.execute(
        "SELECT seq, session, ts, name, body FROM events WHERE seq>? ORDER BY seq LIMIT ?", (after, limit)
    )
    return [_line(row) for row in rows]


def session_lines(store: SessionStore, session: str, *, after: int, limit: int) -> list[EventLine]:
    """Return the first `limit` events of a session after number `after` that are still there, in order."""
    rows = store.database.connection.execute(
        "SELECT seq, session, ts, name, body FROM events WHERE session=? AND seq>? ORDER BY seq LIMIT ?",
        (session, after, limit),
    )
    return [_line(row) for row in rows]


def _line(row: Mapping[str, Any]) -> EventLine:
    ts = _milliseconds(row["ts"])
    head = json.dumps({"ts": ts, "event": row["name"], "session": row["session"]}, ensure_ascii=False)
    own: str = row["body"][1:]
    return EventLine(row["seq"], row["session"], head[:-1] + (", " if len(own) > 1 else "") + own)


def _milliseconds(stored: str) -> str:
    """Return a stored time (`datetime.isoformat`, UTC) to the millisecond."""
    whole, _, rest = stored.removesuffix("+00:00").partition(".")
    return f"{whole}.{rest[:3]:0<3}Z"
