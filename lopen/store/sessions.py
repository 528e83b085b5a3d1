"""Sessions and their history in the database, written by the journal and read by every command.

A session is one JSON document. Its tree has one row per component and task, and only changed rows are written,
so that saving costs the same with ten tasks and with ten thousand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from lopen import __version__
from lopen.core.errors import StorageError, did_you_mean
from lopen.core.events import Event, Recorded, from_fields
from lopen.core.gc_pause import not_collecting
from lopen.store import session_rows
from lopen.store.caps import MAX_ENTRIES, trim
from lopen.store.database import Database, UnreadableDatabase
from lopen.store.folder import ARCHIVES_FOLDER
from lopen.store.session_rows import is_authentic, load_tree, parse_approval, save_tree
from lopen.workflow.session import Approval, Session
from lopen.workflow.task_tree import TaskTree

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
        self._saved: dict[str, TaskTree] = {}  # the trees in the rows, so that only changes are written
        self._loaded: tuple[tuple[int, int], Session] | None = None  # database version, last session read
        self.warn: Callable[[str], None] = lambda line: None  # told of each session that is set aside

    def save(self, session: Session, at: datetime) -> None:
        """Write the session, and the changes in its tree since this store last read or wrote it."""
        body, created = session_rows.dump_session(session), session.created_at.isoformat()
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO sessions (id, module, status, created_at, updated_at, body)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
                " status=excluded.status, updated_at=excluded.updated_at, body=excluded.body",
                (session.id, session.module, session.status, created, at.isoformat(), body),
            )
            before = self._saved.get(session.id)
            if before is None:
                before = load_tree(self.database.connection, session.id)
            if before is not session.tree:
                save_tree(connection, session.id, before, session.tree)
                self._note_saved(session.id, session.tree)

    def _note_saved(self, session: str, tree: TaskTree) -> None:
        """Note that the rows hold `tree`; a rollback restores the previous note."""
        before = self._saved.get(session)
        self._saved[session] = tree

        def undo() -> None:
            if before is None:
                self._saved.pop(session, None)
            else:
                self._saved[session] = before

        self.database.on_rollback(undo)

    def load(self, session_id: str) -> Session:
        """Return the session with its tree, which is slow to read: only where it changed; raises `NoSuchSession`."""
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
            with not_collecting():
                session = session_rows.parse_session(self.database.connection, session_id, row["body"])
        except (ValueError, TypeError) as error:
            self._mark(session_id, SET_ASIDE)
            reason = str(error).partition("\n")[0]
            raise UnreadableSession(
                f"cannot read session {session_id}, which is set aside: {reason}",
                hint="its rows stay in .lopen/state.db; the other sessions go on without it",
            ) from error
        if row["status"] != session.status:  # another version could not read it
            self._mark(session_id, session.status)
        self._saved[session_id] = session.tree
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
        except (ValueError, TypeError) as error:  # not JSON, not of its type, or without a field
            raise UnreadableDatabase(f"{self.database.path}: cannot read {what}: {error}") from error

    def ids(self, *, module: str | None = None, unfinished: bool = False) -> tuple[str, ...]:
        """Return session ids, newest first in the order of their creation, but for those that are set aside.

        `module` selects one module. `unfinished` leaves out complete sessions, and those that are older than a
        complete session of their module.
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
                " AND newer.rowid > sessions.rowid AND newer.status='complete')"
            )
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
        """Load the sessions one by one; one that cannot be read is left out, and said."""
        for session_id in ids:
            try:
                session = self.load(session_id)
            except UnreadableSession as error:
                self.warn(error.message)
            else:
                yield session

    def new_id(self, module: str, at: datetime) -> str:
        """Return `<module>-YYYYMMDD-<n>` with the first number of that day that no session had."""
        return session_rows.new_session_id(self.database.connection, module, at)

    def next_task_number(self, module: str) -> int:
        """Return the lowest number above all tasks of the module, archived sessions included."""
        return session_rows.next_task_number(self.database.connection, module)

    def highest_task_number(self, session: Session) -> int:
        """Return the highest task number of the session; 0 if it has no task."""
        return session_rows.highest_task_number(session.module, (task.id for task in session.tree.tasks))

    def delete(self, session_id: str) -> None:
        """Delete a session and all its history."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM sessions WHERE id=?", (session_id,))
        self._saved.pop(session_id, None)

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
            return session_rows.save_approval(connection, module, approval, text)

    def approved_text(self, module: str, approval: Approval) -> str | None:
        """Return the text that the module's newest approval is for; None for another approval or if it is unknown."""
        with self._readable(f"the approved text of {module}"):
            return session_rows.load_approved_text(self.database.connection, module, approval)

    def approval(self, module: str) -> Approval | None:
        """Return the module's newest approval. Approvals without this user's seal are ignored."""
        connection = self.database.connection
        rows = connection.execute("SELECT body FROM approvals WHERE module=? ORDER BY rowid DESC", (module,))
        with self._readable(f"the approval of {module}"):
            approvals = (parse_approval(row["body"]) for row in rows)
            return next((a for a in approvals if is_authentic(connection, module, a)), None)

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
            connection.executemany(
                "INSERT OR REPLACE INTO criteria (module, id, text) VALUES (?, ?, ?)",
                [(module, i, t) for i, t in new.items()],
            )

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
