"""The journal: holds the session of this process and is the only place that replaces it.

A state change and its events are written in one transaction. Subscribers receive the events once it is durable.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from lopen.base.clock import Clock
from lopen.base.events import Event, Recorded, Subscriber
from lopen.storage.database import Database
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session


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

    def change(self, *events: Event, **fields: Any) -> Session:
        """Replace fields of the session and store `events`, durably."""
        return self.save(replace(self._session, **fields) if fields else self._session, *events)

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
