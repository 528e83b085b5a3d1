"""The running session: its journal, the conversation of its iteration, and a person's requests meanwhile.

The journal holds the session of this process and is the only place that replaces it.

A state change and its events are written in one transaction. Subscribers receive the events once it is durable.

The conversation is stored as it happens, so that a killed run continues it. Its rows are written
together with the rows they belong to: a response with its charge, a call's start and result with their audit rows. A
new iteration replaces them. Requests of a person are kept until the session takes them at a safe point.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lopen.core.clock import Clock
from lopen.core.errors import StorageError
from lopen.core.events import Event, Recorded, Subscriber
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session

LOCKED_WAITS_S = (0.25, 0.5, 1.0, 2.0, 4.0)  # beside the database's own patience, each time


class Journal:
    """The state and history of one session. `redact` removes known secrets from everything it stores or publishes."""

    def __init__(
        self,
        store: SessionStore,
        session: Session,
        clock: Clock,
        *,
        redact: Callable[[str], str],
        subscribers: tuple[Subscriber, ...] = (),
    ) -> None:
        self._store = store
        self._database = store.database
        self._session = session
        self._clock = clock
        self._redact = redact
        self._subscribers = subscribers

    @property
    def session(self) -> Session:
        """The session as last saved, or as the enclosing transaction will save it."""
        return self._session

    @property
    def database(self) -> Database:
        """The database that holds the session and its events."""
        return self._database

    def transaction(self) -> AbstractContextManager[object]:
        """Write everything inside the context at once or not at all; publish its events afterwards."""
        return self._database.transaction()

    def patiently(self, record: Callable[[], None]) -> None:
        """Record a paid response; wait for a database that another process holds, rather than lose an answer."""
        for wait_s in (*LOCKED_WAITS_S, None):
            begun = False
            try:
                with self.transaction():
                    begun = True
                    return record()
            except StorageError:
                if begun or wait_s is None:
                    raise
                self._clock.sleep(wait_s)
        return None

    def save(self, session: Session, *events: Event) -> Session:
        """Replace the session and store `events`, durably."""
        with self.transaction():
            if session is not self._session or not events:
                self._store.save(session, self._clock.now())
                self._replace(session)
            for event in events:
                self._store_event(event)
        return session

    def check_writable(self) -> None:
        """Write the unchanged session; raises `StorageError` if that fails."""
        with self.transaction():
            self._store.save(self._session, self._clock.now())

    def reload(self) -> Session:
        """Read the session from the database again, after a save that failed."""
        self._session = self._store.load(self._session.id)
        return self._session

    def tell(self, *events: Event) -> None:
        """Store and publish events without a state change; events that are not durable are only published."""
        durable = [event for event in events if event.durable]
        if len(durable) == 1:
            self._store_event(durable[0])
        elif durable:
            with self.transaction():
                for event in durable:
                    self._store_event(event)
        for event in events:
            if not event.durable:
                self._publish(Recorded(self._clock.now(), self._session.id, event))

    def _store_event(self, event: Event) -> None:
        body, now = self._redact(event.body()), self._clock.now()
        seq = self._store.append_event(self._session.id, now, event.name, body)
        record = Recorded(now, self._session.id, event, seq, body)
        self._database.on_commit(lambda: self._publish(record))

    def _replace(self, session: Session) -> None:
        before, self._session = self._session, session

        def undo() -> None:
            self._session = before

        self._database.on_rollback(undo)

    def _publish(self, record: Recorded) -> None:
        for subscriber in self._subscribers:
            subscriber(record)


RequestKind = Literal["pause", "skip", "tell", "answer"]


@dataclass(frozen=True, slots=True)
class PersonRequest:
    """One request. `body`: for `skip` the `task`, the `reason` and `keep` ("" for no), for `pause` the `pid` of the process that is asked
    and, where no person asks, `why`, for `tell` and `answer` the `text`.
    """

    kind: RequestKind
    body: dict[str, str]


def add_request(database: Database, session: str, request: PersonRequest) -> None:
    """Add a request to the session's requests, each once."""
    with database.transaction():
        known = requested(database, session)
        if request not in known:
            _keep(database, session, [*known, request])


def requested(database: Database, session: str, *kinds: RequestKind) -> list[PersonRequest]:
    """Return the session's requests (of these kinds), oldest first. Takes microseconds where there are none."""
    row = database.connection.execute("SELECT body FROM memos WHERE key=?", (_key(session),)).fetchone()
    found = [PersonRequest(**fields) for fields in json.loads(row["body"])] if row else []
    return [request for request in found if not kinds or request.kind in kinds]


def drop_pauses(database: Database, session: str) -> None:
    """Delete requests to pause that an earlier process of the session did not take."""
    for request in requested(database, session, "pause"):
        if request.body["pid"] != str(os.getpid()):
            drop_request(database, session, request)


def drop_request(database: Database, session: str, request: PersonRequest) -> None:
    """Delete one request."""
    with database.transaction():
        _keep(database, session, [known for known in requested(database, session) if known != request])


def take_requests(database: Database, session: str, *kinds: RequestKind) -> list[PersonRequest]:
    """Return the session's requests (of these kinds), oldest first, and delete them, in the enclosing transaction."""
    with database.transaction():
        taken = requested(database, session, *kinds)
        _keep(database, session, [r for r in requested(database, session) if r not in taken])
    return taken


def _keep(database: Database, session: str, requests: list[PersonRequest]) -> None:
    database.write("DELETE FROM memos WHERE key=?", (_key(session),))
    if requests:
        text = json.dumps([asdict(request) for request in requests])
        database.write("INSERT INTO memos VALUES (?, ?)", (_key(session), text))


def _key(session: str) -> str:
    return f"requests:{session}"


Kind = Literal["opening", "assistant", "user", "started", "stopped", "result"]
COMPRESSION = 1  # speed counts: rows are written within a turn


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored step of a conversation."""

    kind: Kind
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation as far as it came. `at_ns` is the wall-clock time of its last entry, in nanoseconds."""

    opening: dict[str, Any]
    entries: tuple[Entry, ...]
    at_ns: int


class ConversationStore:
    """The stored conversation of one session. `redact` removes secrets, as from the messages that are sent."""

    def __init__(self, database: Database, session: str, redact: Callable[[str], str]) -> None:
        self._database = database
        self._session = session
        self._redact = redact
        self._next: int | None = None

    def begin(self, opening: dict[str, Any]) -> None:
        """Replace the stored conversation by a new one."""
        with self._database.transaction():
            self.clear()
            self._next = 0
            self.add("opening", opening)

    def add(self, kind: Kind, body: dict[str, Any]) -> None:
        """Store the next step, within the transaction that is open."""
        if self._next is None:
            self._next = self._count()
        text = self._redact(json.dumps(body, ensure_ascii=False))
        self._database.write(
            "INSERT INTO conversations (session, seq, at_ns, kind, body) VALUES (?, ?, ?, ?, ?)",
            (self._session, self._next, time.time_ns(), kind, _packed(text)),
        )
        self._next += 1
        self._database.on_rollback(self._forget)

    def load(self) -> StoredConversation | None:
        """Return the stored conversation; None where there is none that can be read."""
        rows = self._database.connection.execute(
            "SELECT at_ns, kind, body FROM conversations WHERE session=? ORDER BY seq", (self._session,)
        ).fetchall()
        try:
            entries = [Entry(row["kind"], json.loads(zlib.decompress(row["body"]))) for row in rows]
        except (zlib.error, ValueError):
            return None
        if not entries or entries[0].kind != "opening":
            return None
        return StoredConversation(entries[0].body, tuple(entries[1:]), rows[-1]["at_ns"])

    def clear(self) -> None:
        """Delete the stored conversation."""
        self._database.write("DELETE FROM conversations WHERE session=?", (self._session,))
        self._next = 0

    def _count(self) -> int:
        row = self._database.connection.execute(
            "SELECT coalesce(max(seq) + 1, 0) FROM conversations WHERE session=?", (self._session,)
        ).fetchone()
        return int(row[0])

    def _forget(self) -> None:
        self._next = None


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), COMPRESSION)
