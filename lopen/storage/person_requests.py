"""What a person asks of a running session: kept in the database until the session takes it at a safe point."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Literal

from lopen.storage.database import Database


@dataclass(frozen=True, slots=True)
class PersonRequest:
    """One request. `body`: for `skip` the `task` and the `reason`, for `pause` the `pid` of the process that is asked."""

    kind: Literal["pause", "skip"]
    body: dict[str, str]


def add_request(database: Database, session: str, request: PersonRequest) -> None:
    """Add a request to those of the session. One that is already there is not added again."""
    with database.transaction() as connection:
        requests = _requests(database, session)
        if request not in requests:
            text = json.dumps([asdict(r) for r in (*requests, request)])
            connection.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (_key(session), text))


def has_requests(database: Database, session: str) -> bool:
    """Return True if something waits for the session. Takes microseconds."""
    sql = "SELECT 1 FROM memos WHERE key=?"
    return database.connection.execute(sql, (_key(session),)).fetchone() is not None


def pause_requested(database: Database, session: str) -> bool:
    """Return True if a person asked the session to pause."""
    return has_requests(database, session) and any(r.kind == "pause" for r in _requests(database, session))


def drop_pauses(database: Database, session: str) -> None:
    """Delete requests to pause that an earlier process of the session did not take."""
    if pause_requested(database, session):
        own = PersonRequest("pause", {"pid": str(os.getpid())})
        with database.transaction():
            for request in take_requests(database, session):
                if request.kind != "pause" or request == own:
                    add_request(database, session, request)


def take_requests(database: Database, session: str) -> list[PersonRequest]:
    """Return the session's requests, oldest first, and delete them, in the enclosing transaction."""
    with database.transaction() as connection:
        requests = _requests(database, session)
        connection.execute("DELETE FROM memos WHERE key=?", (_key(session),))
    return requests


def _requests(database: Database, session: str) -> list[PersonRequest]:
    row = database.connection.execute("SELECT body FROM memos WHERE key=?", (_key(session),)).fetchone()
    return [PersonRequest(**fields) for fields in json.loads(row["body"])] if row else []


def _key(session: str) -> str:
    return f"requests:{session}"
