"""The journal: holds the session of this process and is the only place that replaces it.

A change of state and the events that tell of it go into one transaction; subscribers hear of them only after
it is durable. Nothing in the loop prints.
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
    """One session's state and history. `redact` takes known secrets out of everything that is kept or shown."""

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
        """The session as last saved, or as it will be saved at the end of the transaction around."""
        return self._session

    @property
    def database(self) -> Database:
        """Where the session and its events are kept."""
        return self._database

    def together(self) -> AbstractContextManager[object]:
        """Everything inside becomes durable at once or not at all; events are shown afterwards."""
        return self._database.transaction()

    def change(self, *events: Event, **fields: Any) -> Session:
        """Replace fields of the session and keep `events`, durably."""
        return self.save(replace(self._session, **fields) if fields else self._session, *events)

    def save(self, session: Session, *events: Event) -> Session:
        """Make `session` the session and keep `events`, durably."""
        with self.together():
            if session is not self._session or not events:
                self._store.save(session, self._clock.now())
                self._replace(session)
            for event in events:
                self._keep(event)
        return session

    def prove_saving(self) -> None:
        """Write the session as it is; raises `StorageError` where nothing can be kept."""
        with self.together():
            self._store.save(self._session, self._clock.now())

    def reload(self) -> Session:
        """The session as the database has it: after a save that failed."""
        self._session = self._store.load(self._session.id)
        return self._session

    def tell(self, *events: Event) -> None:
        """Keep (or, for passing ones, only show) events without a change of state."""
        passing = [e for e in events if not e.durable]
        kept = [e for e in events if e.durable]
        if len(kept) == 1:
            self._keep(kept[0])
        elif kept:
            with self.together():
                for event in kept:
                    self._keep(event)
        for event in passing:
            self._publish(Recorded(self._clock.now(), self._session.id, event))

    def _keep(self, event: Event) -> None:
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
