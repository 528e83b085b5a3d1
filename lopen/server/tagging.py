"""ETags: an answer that a client has already is not sent again."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lopen.base.hashing import content_hash

TAGGED = ("application/json", "text/plain")


class Tagged:
    """An ASGI application that adds an `ETag` to answers of `GET`, or answers 304 where the client has it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        started: Message | None = None
        parts: list[bytes] = []

        async def tag(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start" and _is_tagged(message):
                started = message
                return
            if started is None:
                await send(message)
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                for each in _answer(started, b"".join(parts), Headers(scope=scope)):
                    await send(each)

        await self._app(scope, receive, tag)


def _is_tagged(start: Message) -> bool:
    media_type = Headers(raw=start["headers"]).get("content-type", "").partition(";")[0]
    return start["status"] == 200 and media_type in TAGGED and "etag" not in Headers(raw=start["headers"])


def _answer(start: Message, body: bytes, request: Headers) -> list[Message]:
    headers = MutableHeaders(raw=start["headers"])
    tag = f'"{content_hash(body)}"'
    headers["etag"] = tag
    known = [each.strip().removeprefix("W/") for each in request.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        for name in ("content-length", "content-type"):
            del headers[name]
        start, body = {**start, "status": 304}, b""
    headers["cache-control"] = "private, no-cache"
    return [{**start, "headers": headers.raw}, {"type": "http.response.body", "body": body}]
