"""Sessions and their history as rows: what the journal writes and what every command reads.

A session's own body is one JSON document; its tree is a row a component and a row a task, written only
where they changed, so that saving costs the same with ten tasks and with ten thousand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lopen.base.errors import StorageError
from lopen.base.events import Event, Recorded, from_fields
from lopen.base.gc_pause import not_collecting
from lopen.storage import numbering
from lopen.storage.database import Database, UnreadableDatabase
from lopen.storage.evidence import KEPT, cap
from lopen.storage.segments import FOLDER, moved
from lopen.storage.session_rows import from_row, is_real, load_tree, save_tree, to_row
from lopen.workflow.session import Approval, Session
from lopen.workflow.task_tree import TaskTree

_SESSION = TypeAdapter(Session)


class NoSuchSession(StorageError):
    """No session of that id, or none at all."""


class SessionStore:
    """Reads and writes sessions in one `Database`; every write joins the transaction around it."""

    def __init__(self, database: Database, archives: Path | None = None) -> None:
        """`archives`: where older rows were moved to; beside the database unless another folder is named."""
        self.database = database
        self.archives = database.path.parent / FOLDER if archives is None else archives
        self._saved: dict[str, TaskTree] = {}  # what the rows hold, so that only changes are written
        self._loaded: tuple[tuple[int, int], Session] | None = None  # the last one read, and as of when

    def save(self, session: Session, at: datetime) -> None:
        """Write the session and what changed in its tree since this store last read or wrote it."""
        body = _SESSION.dump_json(replace(session, tree=TaskTree())).decode()
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO sessions (id, module, status, created_at, updated_at, body)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
                " status=excluded.status, updated_at=excluded.updated_at, body=excluded.body",
                (
                    session.id,
                    session.module,
                    session.status,
                    session.created_at.isoformat(),
                    at.isoformat(),
                    body,
                ),
            )
            before = self._saved.get(session.id)
            if before is None:
                before = load_tree(self.database.connection, session.id)
            if before is not session.tree:
                save_tree(connection, session.id, before, session.tree)
                self._remember(session.id, session.tree)

    def _remember(self, session: str, tree: TaskTree) -> None:
        """The rows hold `tree` now; if they are taken back, what they held before."""
        before = self._saved.get(session)
        self._saved[session] = tree

        def undo() -> None:
            if before is None:
                self._saved.pop(session, None)
            else:
                self._saved[session] = before

        self.database.on_rollback(undo)

    def load(self, session_id: str) -> Session:
        """The session of that id with its tree; `NoSuchSession` if there is none.

        Reading ten thousand tasks takes a while: one that nothing was written since it was read is not read again.
        """
        written = self.database.version()
        if self._loaded is not None and self._loaded[0] == written and self._loaded[1].id == session_id:
            return self._loaded[1]
        row = self.database.connection.execute(
            "SELECT body FROM sessions WHERE id=?", (session_id,)
        ).fetchone()
        if row is None:
            raise NoSuchSession(f"there is no session {session_id}", hint="lopen session list shows them")
        with self._readable(f"session {session_id}"), not_collecting():
            session = replace(
                _SESSION.validate_json(row["body"]), tree=load_tree(self.database.connection, session_id)
            )
            session = self._with_real_approval(session)
        self._saved[session_id] = session.tree
        if not self.database.connection.in_transaction:  # what is not durable yet may be taken back
            self._loaded = (written, session)
        return session

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        """A row that is not what was written there: `Unreadable`, naming it."""
        try:
            yield
        except (ValueError, TypeError) as error:  # not JSON, not of its type, or without a field
            raise UnreadableDatabase(f"{self.database.path}: {what} cannot be read: {error}") from error

    def ids(self, *, module: str | None = None, unfinished: bool = False) -> tuple[str, ...]:
        """Session ids, newest first (as they were begun, whatever the clock said); of one module, and only those not complete, nor left behind by one that was completed since, where asked."""
        where = ["1=1"]
        values: list[str] = []
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

    def reverting(self) -> tuple[str, ...]:
        """Sessions whose revert was begun and is not recorded as done."""
        found = self.database.connection.execute(
            """SELECT id FROM sessions WHERE body LIKE '%"revert_intent":{%' ORDER BY rowid"""
        )
        return tuple(row["id"] for row in found)

    def latest(self, *, module: str | None = None, unfinished: bool = False) -> Session | None:
        """The newest session that fits, or None."""
        ids = self.ids(module=module, unfinished=unfinished)
        return self.load(ids[0]) if ids else None

    def new_id(self, module: str, at: datetime) -> str:
        """`<module>-YYYYMMDD-<n>`, n the first one of that day that no session had."""
        return numbering.session_id(self.database.connection, module, at)

    def next_task_number(self, module: str) -> int:
        """The first number no task of the module has had, over all its sessions, archived ones too."""
        return numbering.task_number(self.database.connection, module)

    def highest_task(self, session: Session) -> int:
        """The highest number a task of the session has; 0 without one."""
        return numbering.highest(session.module, (task.id for task in session.tree.tasks))

    def delete(self, session_id: str) -> None:
        """Remove a session and all its history."""
        with self.database.transaction() as connection:
            connection.execute("DELETE FROM sessions WHERE id=?", (session_id,))
        self._saved.pop(session_id, None)  # the rows tell, should there ever be some again

    def rebuilt(self) -> str:
        """The name of the lost database that this one was last rebuilt for, empty where there was none."""
        row = self.database.connection.execute("SELECT body FROM memos WHERE key='rebuilt'").fetchone()
        return str(json.loads(row["body"])) if row else ""

    def note_rebuilt(self, lost: str) -> None:
        """Keep that what could be found of `lost` is here."""
        with self.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO memos VALUES ('rebuilt', ?)", (json.dumps(lost),))

    # history -----------------------------------------------------------------------------------

    def append_event(self, session_id: str, at: datetime, name: str, body: str) -> int:
        """Keep an event; returns its sequence number."""
        cursor = self.database.write(
            "INSERT INTO events (session, ts, name, body) VALUES (?, ?, ?, ?)",
            (session_id, at.isoformat(), name, body),
        )
        return cursor.lastrowid or 0

    def events(self, session_id: str, *, after: int = 0) -> Iterator[Recorded]:
        """The session's history in order, from behind sequence number `after`; what was moved out included."""
        # First what is here: rows that are moved meanwhile are in their segment before they are gone.
        here = self.database.connection.execute(
            "SELECT seq, ts, name, body, (SELECT min(seq) FROM events WHERE session=?1) AS oldest"
            " FROM events WHERE session=?1 AND seq>?2 ORDER BY seq",
            (session_id, after),
        ).fetchall()
        older: Iterable[Any] = ()
        if here and here[0]["oldest"] > after + 1:  # the newest row always stays: nothing here, nothing there
            older = moved(self.archives, session_id, "events", after=after, before=here[0]["seq"])
        for row in chain(older, here):
            with self._readable(f"event {row['seq']} of session {session_id}"):
                event: Event = from_fields(row["name"], json.loads(row["body"]))
                recorded = Recorded(datetime.fromisoformat(row["ts"]), session_id, event, row["seq"])
            yield recorded

    # approvals and criteria --------------------------------------------------------------------

    def approve(self, module: str, approval: Approval) -> Approval:
        """Keep a person's approval under their seal, and return it so; the newest counts, in this project's folder."""
        approval, body = to_row(self.database.connection, module, approval)
        sql = "INSERT INTO approvals (module, at, body) VALUES (?, ?, ?)"
        self.database.write(sql, (module, approval.at.isoformat(), body))
        return approval

    def approval(self, module: str) -> Approval | None:
        """The module's newest approval. What bears no seal of this person's is no approval."""
        connection = self.database.connection
        rows = connection.execute("SELECT body FROM approvals WHERE module=? ORDER BY rowid DESC", (module,))
        with self._readable(f"the approval of {module}"):
            found = (from_row(row["body"]) for row in rows)
            return next((a for a in found if is_real(connection, module, a)), None)

    def _with_real_approval(self, session: Session) -> Session:
        given = session.approval
        if given is None or is_real(self.database.connection, session.module, given):
            return session
        return replace(session, approval=None)

    def known_criteria(self, module: str) -> dict[str, str]:
        """Criterion text → the id that stays with it."""
        rows = self.database.connection.execute("SELECT id, text FROM criteria WHERE module=?", (module,))
        return {row["text"]: row["id"] for row in rows}

    def remember_criteria(self, module: str, criteria: dict[str, str]) -> None:
        """Keep id → text of criteria seen for the first time."""
        known = self.known_criteria(module)
        fresh = {i: t for i, t in criteria.items() if known.get(t) != i}
        if not fresh:
            return
        with self.database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO criteria (module, id, text) VALUES (?, ?, ?)",
                [(module, i, t) for i, t in fresh.items()],
            )

    # verdicts ----------------------------------------------------------------------------------

    def remember_verdict(
        self,
        session_id: str,
        evidence_hash: str,
        scope: str,
        subject: str,
        at: datetime,
        body: dict[str, Any],
        *,
        kept: int = KEPT,
    ) -> None:
        """Keep a verdict under the hash of its evidence: its first `kept` findings (errors come first), and of
        a session's verdicts the newest `kept`."""
        findings = body.get("findings", ())
        if len(findings) > kept:
            body = body | {"findings": findings[:kept], "findings_dropped": len(findings) - kept}
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO verdicts (session, evidence_hash, scope, subject, given_at, body)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (session_id, evidence_hash, scope, subject, at.isoformat(), json.dumps(body)),
            )
            cap(connection, "verdicts", session_id, kept)

    def verdict(self, session_id: str, evidence_hash: str) -> dict[str, Any] | None:
        """The verdict given on exactly this evidence."""
        row = self.database.connection.execute(
            "SELECT body FROM verdicts WHERE session=? AND evidence_hash=?", (session_id, evidence_hash)
        ).fetchone()
        with self._readable(f"a verdict of session {session_id}"):
            return json.loads(row["body"]) if row else None

    def verdicts(self, session_id: str) -> list[dict[str, Any]]:
        """Every verdict of the session with scope and subject, oldest first."""
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
