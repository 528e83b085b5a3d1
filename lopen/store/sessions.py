"""Sessions and their history in the database, written by the journal and read by every command.

A session is one JSON document, its tree included. Session and task numbers are never
reused, because commits carry them.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter

from lopen import __version__
from lopen.core.errors import StorageError, did_you_mean
from lopen.core.events import Event, Recorded, from_fields, json_line
from lopen.core.person import holds, owner, sealed
from lopen.store.caps import MAX_ENTRIES, trim
from lopen.store.database import RECORDED_TASKS, Database, UnreadableDatabase
from lopen.store.folder import ARCHIVES_FOLDER
from lopen.workflow.session import Approval, Session

V = TypeVar("V")
SET_ASIDE = (
    f"unreadable by {__version__}"  # the status of a row that this version cannot read; another version tries
)


class NoSuchSession(StorageError):
    """The session does not exist."""


class UnreadableSession(UnreadableDatabase):
    """A session's rows say nothing that this version can read; the other sessions do not depend on them."""


class SessionStore:
    """Reads and writes sessions in one `Database`; every write joins the enclosing transaction."""

    def __init__(self, database: Database, archives: Path | None = None) -> None:
        """Open the store. `archives` holds the older rows; by default a folder beside the database."""
        self.database = database
        self.archives = database.path.parent / ARCHIVES_FOLDER if archives is None else archives
        self._loaded: tuple[tuple[int, int], Session] | None = None  # database version, last session read
        self.warn: Callable[[str], None] = lambda line: None  # told of each session that is set aside

    def save(self, session: Session, at: datetime) -> None:
        """Write the session."""
        body, created = _adapter(Session).dump_json(session).decode(), session.created_at.isoformat()
        self.database.write(
            "INSERT INTO sessions (id, module, status, created_at, updated_at, body)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " status=excluded.status, updated_at=excluded.updated_at, body=excluded.body",
            (session.id, session.module, session.status, created, at.isoformat(), body),
        )

    def load(self, session_id: str) -> Session:
        """Return the session, read again only where the database changed; raises `NoSuchSession`."""
        version = self.database.version()
        if self._loaded is not None and self._loaded[0] == version and self._loaded[1].id == session_id:
            return self._loaded[1]
        row = self.database.connection.execute(
            "SELECT status, body FROM sessions WHERE id=?", (session_id,)
        ).fetchone()
        if row is None:
            near = (name for known in self.ids() for name in (known, known.rsplit("-", 2)[0]))
            hint = did_you_mean(session_id, near, "lopen session list shows them")
            raise NoSuchSession(f"there is no session {session_id}", hint=hint)
        try:
            session = _parse_session(self.database.connection, row["body"])
        except (ValueError, TypeError) as error:
            self._mark(session_id, SET_ASIDE)
            reason = str(error).partition("\n")[0]
            raise UnreadableSession(
                f"cannot read session {session_id}, which is set aside: {reason}",
                hint="its rows stay in .lopen/state.db; the other sessions go on without it",
            ) from error
        if row["status"] != session.status:  # another version could not read it
            self._mark(session_id, session.status)
        if not self.database.connection.in_transaction:  # an open transaction may still be rolled back
            self._loaded = (version, session)
        return session

    def _mark(self, session_id: str, status: str) -> None:
        """Set the status by which sessions are selected; the session's own is in its body."""
        with suppress(StorageError):  # another process writes; the next reader tries
            self.database.write("UPDATE sessions SET status=? WHERE id=?", (status, session_id))

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        """Raise `UnreadableDatabase`, naming the row, if its content is not valid."""
        try:
            yield
        except (ValueError, TypeError, zlib.error) as error:  # not JSON, not of its type, or without a field
            raise UnreadableDatabase(f"{self.database.path}: cannot read {what}: {error}") from error

    def ids(self, *, module: str | None = None, unfinished: bool = False) -> tuple[str, ...]:
        """Return session ids, newest first in the order of their creation, without the sessions that are set aside.

        `module` selects one module. `unfinished` leaves out complete sessions, and all but the newest session of
        a module.
        """
        where = ["status <> ?"]
        values = [SET_ASIDE]
        if module is not None:
            where.append("module=?")
            values.append(module)
        if unfinished:
            where.append("status <> 'complete'")
            where.append(
                "NOT EXISTS (SELECT 1 FROM sessions AS newer WHERE newer.module=sessions.module"
                " AND newer.rowid > sessions.rowid AND newer.status <> ?)"
            )
            values.append(SET_ASIDE)
        sql = f"SELECT id FROM sessions WHERE {' AND '.join(where)} ORDER BY rowid DESC"  # noqa: S608 - fixed words only
        return tuple(row["id"] for row in self.database.connection.execute(sql, values))

    def unfinished_reverts(self) -> tuple[str, ...]:
        """Return the ids of sessions with a revert that started and is not recorded as done."""
        found = self.database.connection.execute(
            "SELECT id FROM sessions WHERE json_valid(body)"
            " AND json_extract(body, '$.intents.revert') IS NOT NULL ORDER BY rowid"
        )
        return tuple(row["id"] for row in found)

    def latest(self, *, module: str | None = None, unfinished: bool = False) -> Session | None:
        """Return the newest session that `ids` selects, or None."""
        return next(self.readable(self.ids(module=module, unfinished=unfinished)), None)

    def readable(self, ids: Iterable[str]) -> Iterator[Session]:
        """Load the sessions one by one; leave out an unreadable session with a warning."""
        for session_id in ids:
            try:
                session = self.load(session_id)
            except UnreadableSession as error:
                self.warn(error.message)
            else:
                yield session

    def new_id(self, module: str, at: datetime) -> str:
        """Return `<module>-YYYYMMDD-<n>`, where n follows every number of that day, archived and deleted ones too."""
        connection, stem = self.database.connection, f"{module}-{at:%Y%m%d}-"
        rows = connection.execute(
            "SELECT id FROM sessions WHERE module=?1 AND substr(id, 1, ?2) = ?3"
            " UNION SELECT session FROM archived WHERE module=?1 AND substr(session, 1, ?2) = ?3",
            (module, len(stem), stem),
        )
        taken = [int(n) for row in rows if (n := row["id"][len(stem) :]).isdigit()]
        return f"{stem}{max([*taken, _last_deleted(connection, stem)]) + 1}"

    def next_task_number(self, module: str) -> int:
        """Return the lowest number above all tasks of the module, archived sessions included."""
        connection = self.database.connection
        rows = connection.execute(f"SELECT id FROM {RECORDED_TASKS} WHERE module=?", (module,))  # noqa: S608 - fixed words only
        archived = connection.execute(
            "SELECT max(highest_task) AS n FROM archived WHERE module=?", (module,)
        ).fetchone()
        return max(highest_task_number(module, (row["id"] for row in rows)), archived["n"] or 0) + 1

    def delete(self, session_id: str) -> None:
        """Delete a session and all its history."""
        self.database.write("DELETE FROM sessions WHERE id=?", (session_id,))

    def append_event(self, session_id: str, at: datetime, name: str, body: str) -> int:
        """Store an event; return its sequence number."""
        cursor = self.database.write(
            "INSERT INTO events (session, ts, name, body) VALUES (?, ?, ?, ?)",
            (session_id, at.isoformat(), name, body),
        )
        return cursor.lastrowid or 0

    def events(self, session_id: str, *, after: int = 0) -> Iterator[Recorded]:
        """Yield the session's events after sequence number `after` that are still there, in order."""
        rows = self.database.connection.execute(
            "SELECT seq, ts, name, body FROM events WHERE session=? AND seq>? ORDER BY seq",
            (session_id, after),
        ).fetchall()
        for row in rows:
            with self._readable(f"event {row['seq']} of session {session_id}"):
                event: Event = from_fields(row["name"], json.loads(row["body"]))
                recorded = Recorded(datetime.fromisoformat(row["ts"]), session_id, event, row["seq"])
            yield recorded

    def approve(self, module: str, approval: Approval, text: str = "") -> Approval:
        """Seal and store a user's approval, with the text it is for; return the sealed one. The newest is valid."""
        with self.database.transaction() as connection:
            approval = replace(approval, seal=sealed(*_sealed_parts(connection, module, approval)))
            body = _adapter(Approval).dump_json(approval).decode()
            sql = "INSERT INTO approvals (module, at, body) VALUES (?, ?, ?)"
            connection.execute(sql, (module, approval.at.isoformat(), body))
            if text:
                compressed = zlib.compress(text.encode("utf-8", "surrogatepass"))
                sql = "INSERT OR REPLACE INTO approved_texts VALUES (?, ?, ?)"
                connection.execute(sql, (module, approval.spec_hash, compressed))
        return approval

    def approved_text(self, module: str, approval: Approval) -> str | None:
        """Return the text that the module's newest approval is for; None for another approval or if it is unknown."""
        sql = "SELECT body FROM approved_texts WHERE module=? AND spec_hash=?"
        row = self.database.connection.execute(sql, (module, approval.spec_hash)).fetchone()
        with self._readable(f"the approved text of {module}"):
            return None if row is None else zlib.decompress(row["body"]).decode("utf-8", "surrogatepass")

    def approval(self, module: str) -> Approval | None:
        """Return the module's newest approval. Approvals without this user's seal are ignored."""
        connection = self.database.connection
        rows = connection.execute("SELECT body FROM approvals WHERE module=? ORDER BY rowid DESC", (module,))
        with self._readable(f"the approval of {module}"):
            approvals = (_adapter(Approval).validate_json(row["body"]) for row in rows)
            return next((a for a in approvals if _is_authentic(connection, module, a)), None)

    def known_criteria(self, module: str) -> dict[str, str]:
        """Return the recorded criteria of a module: text → id."""
        rows = self.database.connection.execute("SELECT id, text FROM criteria WHERE module=?", (module,))
        return {row["text"]: row["id"] for row in rows}

    def remember_criteria(self, module: str, criteria: dict[str, str]) -> None:
        """Record new criteria, id → text."""
        known = self.known_criteria(module)
        if not (new := {i: t for i, t in criteria.items() if known.get(t) != i}):
            return
        with self.database.transaction() as connection:
            for i, t in new.items():
                sql = "INSERT OR REPLACE INTO criteria (module, id, text) VALUES (?, ?, ?)"
                connection.execute(sql, (module, i, t))

    def remember_verdict(
        self,
        session_id: str,
        evidence_hash: str,
        scope: str,
        subject: str,
        at: datetime,
        body: dict[str, Any],
        *,
        limit: int = MAX_ENTRIES,
    ) -> None:
        """Store a verdict under the hash of its evidence.

        `limit` applies to its findings (the first ones stay, and errors come first) and to the session's
        verdicts (the newest ones stay).
        """
        findings = body.get("findings", ())
        if len(findings) > limit:
            body = body | {"findings": findings[:limit], "findings_dropped": len(findings) - limit}
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO verdicts (session, evidence_hash, scope, subject, given_at, body)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, evidence_hash, scope, subject, at.isoformat(), json.dumps(body)),
            )
            trim(connection, "verdicts", session_id, limit)

    def verdict(self, session_id: str, evidence_hash: str) -> dict[str, Any] | None:
        """Return the verdict on exactly this evidence, or None."""
        row = self.database.connection.execute(
            "SELECT body FROM verdicts WHERE session=? AND evidence_hash=?", (session_id, evidence_hash)
        ).fetchone()
        with self._readable(f"a verdict of session {session_id}"):
            return json.loads(row["body"]) if row else None

    def verdicts(self, session_id: str) -> list[dict[str, Any]]:
        """Return every verdict of the session with scope and subject, oldest first."""
        rows = self.database.connection.execute(
            "SELECT scope, subject, given_at, body FROM verdicts WHERE session=? ORDER BY rowid",
            (session_id,),
        )
        with self._readable(f"a verdict of session {session_id}"):
            return [
                {"scope": r["scope"], "subject": r["subject"], "given_at": r["given_at"]}
                | json.loads(r["body"])
                for r in rows
            ]


class EventLine(NamedTuple):
    """One event: its number, which grows over all sessions, and its JSON object on one line as `Recorded.to_json` writes it.

    A number of 0 means that it is not recorded.
    """

    seq: int
    session: str
    text: str


def newest_event(store: SessionStore) -> int:
    """Return the number of the newest event of any session; 0 if there are none."""
    row = store.database.connection.execute("SELECT seq FROM sqlite_sequence WHERE name='events'").fetchone()
    return int(row[0]) if row else 0


def event_lines(
    store: SessionStore, session: str | None = None, *, after: int, limit: int
) -> list[EventLine]:
    """Return the first `limit` events of a session, or of all, after number `after` that are still there, in order."""
    rows = store.database.connection.execute(
        "SELECT seq, session, ts, name, body FROM events WHERE seq>?1 AND (?2 IS NULL OR session=?2) ORDER BY seq LIMIT ?3",
        (after, session, limit),
    )
    return [_line(row) for row in rows]


def _line(row: Mapping[str, Any]) -> EventLine:
    text = json_line(datetime.fromisoformat(row["ts"]), row["name"], row["session"], row["body"])
    return EventLine(row["seq"], row["session"], text)


@cache  # made when first used: each takes milliseconds, and most commands need few of them
def _adapter(kind: type[V]) -> TypeAdapter[V]:
    return TypeAdapter(kind)


def _is_authentic(connection: sqlite3.Connection, module: str, approval: Approval) -> bool:
    """Return True if this user sealed exactly this approval in this database."""
    return holds(approval.seal, *_sealed_parts(connection, module, approval))


def _sealed_parts(connection: sqlite3.Connection, module: str, approval: Approval) -> tuple[str, ...]:
    """Return the sealed values: every field of the approval, and the database it belongs to."""
    fields = _adapter(Approval).dump_python(replace(approval, seal=""), mode="json")
    return "approval", owner(connection), module, json.dumps(fields, sort_keys=True)


def reserve_id(connection: sqlite3.Connection, session: str) -> None:
    """Let no later session have the id of a deleted one, or of another machine's, and adopt its commits."""
    stem, dash, number = session.rpartition("-")
    last = max(int(number), _last_deleted(connection, stem + dash))
    connection.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (f"deleted:{stem}{dash}", str(last)))


def _last_deleted(connection: sqlite3.Connection, stem: str) -> int:
    row = connection.execute("SELECT body FROM memos WHERE key=?", (f"deleted:{stem}",)).fetchone()
    return int(row["body"]) if row else 0


def highest_task_number(module: str, tasks: Iterable[str]) -> int:
    """Return the highest number among task ids `<module>-t<n>`; 0 if there are none."""
    stem = f"{module}-t"
    return max((int(n) for task in tasks if (n := task.removeprefix(stem)).isdigit()), default=0)


def _parse_session(connection: sqlite3.Connection, body: str) -> Session:
    """Return the session, its approval only if this user gave it. Raises `ValueError`, `TypeError`."""
    session: Session = _adapter(Session).validate_json(body)
    approval = session.approval
    if approval is None or _is_authentic(connection, session.module, approval):
        return session
    return replace(session, approval=None)
