"""The events of a project as they are recorded, streamed to any number of readers.

One task a project asks the database for news and keeps the newest events in memory. Each reader keeps only its
own position, so a slow one costs nothing and a late one reads what it missed from the database.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lopen.application.live_text import LiveText, live_texts, read_live_text
from lopen.core.errors import LopenError
from lopen.server.served import Chosen, OpenProject, ServedProject
from lopen.store.archives import archive_path
from lopen.store.event_lines import EventLine, newest_event, project_lines, session_lines

POLL_S = 0.05  # SQLite does not announce the writes of another process
AFTER_FAILURE_S = 1.0
KEPT, KEPT_CHARACTERS = 2_000, 4_000_000  # events in memory: at most so many, and so much text
PAGE = 250  # events read from the database at once
CHUNK_CHARACTERS = (
    64_000  # text handed to a connection at once: a reader that is slow holds no more than that
)


class EventFeed:
    """The newest events of one project, and what comes next."""

    def __init__(self, project: ServedProject) -> None:
        self._project = project
        self._kept: deque[EventLine] = deque()
        self._characters = 0  # of the text in `_kept`
        self._floor = 0  # every event above this number is in `_kept`
        self._newest = 0
        self._version: tuple[int, int] | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._readers = 0
        self._live: dict[str, LiveText] = {}
        self.closed = False

    async def start(self, session: str | None) -> int:
        """Return the number of the newest event. `session` has to exist: raises `NoSuchSession`."""
        return await self._project.run(_position, session)

    async def lines(
        self, session: str | None, after: int, heartbeat_s: float
    ) -> AsyncIterator[list[EventLine]]:
        """Yield events after number `after`, of one session or of all, in order; an empty list as a heartbeat."""
        sent: dict[str, tuple[int, int, int]] = {}
        self._readers += 1
        try:
            await self._join()
            while not self.closed:
                if self._task is not None and self._task.done():
                    self._task.result()  # raises what ended it: without it nothing new would come
                changed = self._changed
                if after < self._floor:
                    found, after, more = await self._project.run(_page, session, after)
                else:
                    newer = [line for line in self._kept if line.seq > after]
                    found = [line for line in newer if session in (None, line.session)]
                    after, more = max(after, self._newest), False
                found = [*found, *_pieces(self._live, session, sent)]
                if found:
                    yield found
                elif not more:
                    try:
                        await asyncio.wait_for(changed.wait(), heartbeat_s)
                    except TimeoutError:
                        yield []
        finally:
            self._leave()

    async def _join(self) -> None:
        if self._task is None:
            self._floor = self._newest = await self._project.run(_position, None)
            self._forget()
            if self._task is None:
                self._task = asyncio.create_task(self._watch())
                self._task.add_done_callback(lambda _: self._wake())

    def _leave(self) -> None:
        self._readers -= 1
        if not self._readers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self) -> None:
        while True:
            try:
                version, lines, newest, live = await self._project.run(_news, self._newest, self._version)
            except LopenError:
                await asyncio.sleep(AFTER_FAILURE_S)
                continue
            if newest < self._newest:  # the database was replaced
                self._forget()
                self._floor = self._newest = newest
            self._version = version
            if live != self._live:
                self._live = live
                self._wake()
            if lines:
                self._keep(lines)
                self._wake()
            if len(lines) < PAGE:
                await asyncio.sleep(POLL_S)

    def _keep(self, lines: list[EventLine]) -> None:
        self._kept.extend(lines)
        self._newest = lines[-1].seq
        self._characters += sum(len(line.text) for line in lines)
        while len(self._kept) > KEPT or self._characters > KEPT_CHARACTERS:
            oldest = self._kept.popleft()
            self._floor = oldest.seq
            self._characters -= len(oldest.text)

    def _forget(self) -> None:
        self._kept.clear()
        self._characters = 0

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """End every reader."""
        self.closed = True
        self._wake()


def _position(project: OpenProject, session: str | None) -> int:
    store = project.store
    if session is not None and session not in store.ids() and archive_path(store.archives, session) is None:
        store.load(session)  # raises
    return newest_event(project.store)


def _page(project: OpenProject, session: str | None, after: int) -> tuple[list[EventLine], int, bool]:
    """Return a page of events, the number up to which nothing is missing, and if there may be more."""
    newest = newest_event(project.store)
    if session is None:
        found = project_lines(project.store, after=after, limit=PAGE)
    else:
        store = project.store
        if session not in store.ids():
            from lopen.application.open_store import store_with

            with suppress(LopenError):
                store = store_with(store, session)
        found = session_lines(store, session, after=after, limit=PAGE)
    if len(found) == PAGE:
        return found, found[-1].seq, True
    return found, max(newest, found[-1].seq if found else 0), False


def _news(
    project: OpenProject, after: int, version: tuple[int, int] | None
) -> tuple[tuple[int, int] | None, list[EventLine], int, dict[str, LiveText]]:
    """Return the version that was read whole, new events if it changed, the newest number, and what models are writing."""
    now = project.store.database.version()
    found = (read_live_text(path) for path in live_texts(project.root))
    live = {each.session: each for each in found if each is not None}
    if now == version:
        return now, [], after, live
    lines = project_lines(project.store, after=after, limit=PAGE)
    seen = version if len(lines) == PAGE else now  # after a full page there may be more of the same version
    return seen, lines, lines[-1].seq if lines else newest_event(project.store), live


def _pieces(
    live: dict[str, LiveText], session: str | None, sent: dict[str, tuple[int, int, int]]
) -> list[EventLine]:
    """Return what came to the answers since `sent` (turn, part and position by session), which is updated."""
    found = []
    for name, present in live.items():
        if session not in (None, name):
            continue
        turn, part, position = sent.get(name, (-1, -1, 0))
        if (turn, part) != (present.turn, present.part) or position < present.start:
            position = present.start
        text, end = present.text[position - present.start :], present.start + len(present.text)
        if text:
            body = asdict(present) | {"start": position, "text": text}
            found.append(EventLine(0, name, json.dumps(body, ensure_ascii=False)))
            sent[name] = (present.turn, present.part, end)
    return found


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


def _chunk(line: EventLine) -> str:
    if not line.seq:  # what a model is writing, beside the recorded events
        return f"event: live\ndata: {line.text}\n\n"
    return f"id: {line.seq}\ndata: {line.text}\n\n"


async def _chunks(feed: EventFeed, session: str | None, after: int) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    async for lines in feed.lines(session, after, HEARTBEAT_S):
        if not lines:
            yield b": heartbeat\n\n"
        texts, size = list[str](), 0
        for text in map(_chunk, lines):
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
