"""The events of a project as they are recorded, streamed to any number of readers.

Each reader keeps only its own position, so a slow one costs nothing and a late one reads the missed events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import StreamingResponse

from lopen.application.open_store import store_with
from lopen.core.errors import LopenError
from lopen.server.served import Chosen, OpenProject, ServedProject
from lopen.store.archives import archive_path
from lopen.store.sessions import EventLine, event_lines, newest_event

POLL_S = 0.1  # SQLite does not announce the writes of another process
AFTER_FAILURE_S = 1.0
HEARTBEAT_S = 15.0
RETRY_MS = 1_000
LARGEST_ID = 2**63 - 1
PAGE = 100  # events read from the database at once: a reader that is slow holds no more than that

routes = APIRouter(tags=["events"])


class EventStream(StreamingResponse):
    """Server-sent events until the server ends or the client leaves."""

    media_type = "text/event-stream"


@routes.get("/api/sessions/{session_id}/events", response_class=EventStream)
async def session_events(
    project: Chosen,
    session_id: Annotated[str, Path(max_length=255)],
    last_event_id: Annotated[int, Header(ge=0, le=LARGEST_ID)] = 0,
    after: Annotated[int, Query(ge=0, le=LARGEST_ID, description="As `Last-Event-ID`.")] = 0,
) -> EventStream:
    """Stream a session's events from its first one, or from the one after `Last-Event-ID`."""
    await project.run(_newest, session_id)
    return EventStream(_chunks(project, session_id, max(last_event_id, after)))


@routes.get("/api/events", response_class=EventStream)
async def project_events(
    project: Chosen,
    last_event_id: Annotated[int | None, Header(ge=0, le=LARGEST_ID)] = None,
    after: Annotated[int | None, Query(ge=0, le=LARGEST_ID, description="As `Last-Event-ID`.")] = None,
) -> EventStream:
    """Stream the events of all sessions from now on, or from the one after `Last-Event-ID`."""
    newest = await project.run(_newest, None)
    given = [number for number in (last_event_id, after) if number is not None]
    return EventStream(_chunks(project, None, max(given, default=newest)))


def _newest(project: OpenProject, session: str | None) -> int:
    """Return the number of the newest event; raise `NoSuchSession` for an unknown session."""
    store = project.store
    if session is not None and session not in store.ids() and archive_path(store.archives, session) is None:
        store.load(session)  # raises
    return newest_event(store)


async def _chunks(project: ServedProject, session: str | None, after: int) -> AsyncIterator[bytes]:
    """Yield the events after number `after`, of one session or of all, in order; a comment as a heartbeat."""
    silent_s = 0.0
    yield f"retry: {RETRY_MS}\n\n".encode()
    while not project.ending:
        try:
            found, after = await project.run(_news, session, after)
        except LopenError:  # the state is locked or being replaced, or the settings are wrong
            await asyncio.sleep(AFTER_FAILURE_S)
            continue
        if found:
            silent_s = 0.0
            yield "".join(f"id: {e.seq}\ndata: {e.text}\n\n" for e in found).encode("utf-8", "replace")
        elif silent_s >= HEARTBEAT_S:
            silent_s = 0.0
            yield b": heartbeat\n\n"
        else:
            silent_s += POLL_S
            await asyncio.sleep(POLL_S)


def _news(project: OpenProject, session: str | None, after: int) -> tuple[list[EventLine], int]:
    """Return a page of the events after number `after`, and the number from which to go on."""
    store, newest = project.store, newest_event(project.store)
    if newest <= after:  # it is smaller where the database was replaced
        return [], newest
    if session is not None:
        with suppress(LopenError):
            store = store_with(store, session)
    found = event_lines(store, session, after=after, limit=PAGE)
    last = found[-1].seq if found else newest
    return found, last if len(found) == PAGE else max(newest, last)  # events may come between the two reads
