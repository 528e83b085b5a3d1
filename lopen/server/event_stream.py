"""The events of a project as they are recorded, streamed to any number of readers.

Each reader keeps only its own position, so a slow one costs nothing and a late one reads what it missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lopen.application.open_store import store_with
from lopen.core.errors import LopenError, StorageError
from lopen.server.served import Chosen, OpenProject, ServedProject
from lopen.store.archives import archive_path
from lopen.store.sessions import EventLine, event_lines, newest_event

POLL_S = 0.1  # SQLite does not announce the writes of another process
AFTER_FAILURE_S = 1.0
PAGE = 250  # events read from the database at once
CHUNK_CHARACTERS = 64_000  # handed to a connection at once: a reader that is slow holds no more than that


class EventFeed:
    """The events of one project, read for each reader from its own place on."""

    def __init__(self, project: ServedProject) -> None:
        self._project = project
        self.closed = False

    async def start(self, session: str | None) -> int:
        """Return the number of the newest event. `session` has to exist: raises `NoSuchSession`."""
        return await self._project.run(_position, session)

    async def lines(
        self, session: str | None, after: int, heartbeat_s: float
    ) -> AsyncIterator[list[EventLine]]:
        """Yield events after number `after`, of one session or of all, in order; an empty list as a heartbeat."""
        version: tuple[int, int] | None = None
        silent_s = 0.0
        while not self.closed:
            try:
                version, found, after = await self._project.run(_news, session, after, version)
            except StorageError:  # it is locked, or being replaced
                await asyncio.sleep(AFTER_FAILURE_S)
                continue
            if found:
                silent_s = 0.0
                yield found
            elif silent_s >= heartbeat_s:
                silent_s = 0.0
                yield []
            else:
                silent_s += POLL_S
                await asyncio.sleep(POLL_S)

    def close(self) -> None:
        """End every reader."""
        self.closed = True


def _position(project: OpenProject, session: str | None) -> int:
    store = project.store
    if session is not None and session not in store.ids() and archive_path(store.archives, session) is None:
        store.load(session)  # raises
    return newest_event(project.store)


def _news(
    project: OpenProject, session: str | None, after: int, version: tuple[int, int] | None
) -> tuple[tuple[int, int] | None, list[EventLine], int]:
    """Return the version that was read whole, new events if it changed, and their last number."""
    now, store = project.store.database.version(), project.store
    if now == version:
        return now, [], after
    newest = newest_event(store)
    if newest < after:  # the database was replaced
        return now, [], newest
    if session is None:
        found = event_lines(store, after=after, limit=PAGE)
    else:
        with suppress(LopenError):
            store = store_with(store, session)
        found = event_lines(store, session, after=after, limit=PAGE)
    if len(found) == PAGE:  # there may be more of the same version
        return version, found, found[-1].seq
    return now, found, max(newest, found[-1].seq if found else 0)


routes = APIRouter(tags=["events"])
HEARTBEAT_S = 15.0
RETRY_MS = 1_000
LARGEST_ID = 2**63 - 1


class EventStream(Response):
    """Sends chunks until they end or the client leaves."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncIterator[bytes], status_code: int = 200) -> None:
        super().__init__(
            status_code=status_code, headers={"cache-control": "no-store", "x-accel-buffering": "no"}
        )
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            failure, _ = await asyncio.gather(sending, leaving, return_exceptions=True)
            if isinstance(failure, Exception) and not isinstance(failure, LopenError):
                raise failure  # a bug: the server's output has the traceback

    async def _send(self, send: Send) -> None:
        async for chunk in self._chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _chunks(feed: EventFeed, session: str | None, after: int) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    async for lines in feed.lines(session, after, HEARTBEAT_S):
        if not lines:
            yield b": heartbeat\n\n"
        texts, size = list[str](), 0
        for line in lines:
            text = f"id: {line.seq}\ndata: {line.text}\n\n"
            texts.append(text)
            size += len(text)
            if size >= CHUNK_CHARACTERS:
                yield "".join(texts).encode("utf-8", "replace")
                texts, size = [], 0
        if texts:
            yield "".join(texts).encode("utf-8", "replace")


def _feed(request: Request, project: ServedProject) -> EventFeed:
    feeds: dict[str, EventFeed] = request.app.state.feeds
    return feeds[project.name]


@routes.get("/api/sessions/{session_id}/events", response_class=EventStream)
async def session_events(
    request: Request,
    project: Chosen,
    session_id: Annotated[str, Path(max_length=255)],
    last_event_id: Annotated[int, Header(ge=0, le=LARGEST_ID)] = 0,
    after: Annotated[int, Query(ge=0, le=LARGEST_ID, description="As `Last-Event-ID`.")] = 0,
) -> Response:
    """Stream a session's events from its first one, or from the one after `Last-Event-ID`."""
    feed = _feed(request, project)
    await feed.start(session_id)
    return EventStream(_chunks(feed, session_id, max(last_event_id, after)))


@routes.get("/api/events", response_class=EventStream)
async def project_events(
    request: Request,
    project: Chosen,
    last_event_id: Annotated[int | None, Header(ge=0, le=LARGEST_ID)] = None,
    after: Annotated[int | None, Query(ge=0, le=LARGEST_ID, description="As `Last-Event-ID`.")] = None,
) -> Response:
    """Stream the events of all sessions from now on, or from the one after `Last-Event-ID`."""
    feed = _feed(request, project)
    newest = await feed.start(None)
    given = [number for number in (last_event_id, after) if number is not None]
    return EventStream(_chunks(feed, None, max(given, default=newest)))
