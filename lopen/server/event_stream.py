"""Server-sent events: the response, and the routes that stream a session's or a project's events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lopen.server.feed import EventFeed
from lopen.server.parameters import Chosen
from lopen.server.served import ServedProject
from lopen.storage.event_lines import EventLine

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
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        async for chunk in self._chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _chunk(line: EventLine) -> str:
    if not line.seq:  # what a model is writing, beside the recorded events
        return f"event: live\ndata: {line.text}\n\n"
    return f"id: {line.seq}\ndata: {line.text}\n\n"


async def _chunks(feed: EventFeed, session: str | None, after: int) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    async for lines in feed.lines(session, after, HEARTBEAT_S):
        yield ("".join(map(_chunk, lines)) or ": heartbeat\n\n").encode("utf-8", "replace")


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
