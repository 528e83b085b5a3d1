"""The application: routes behind the access gate, tags on their answers, and the OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lopen import __version__
from lopen.core.hashing import content_hash
from lopen.server import budget_routes, event_stream, metrics, module_routes, session_routes
from lopen.server.access import AccessGate, AccessKeys
from lopen.server.dashboard import dashboard_routes
from lopen.server.event_stream import EventFeed
from lopen.server.problems import MEDIA_TYPE, ProblemDetails, add_problems
from lopen.server.served import ServedProjects

DESCRIPTION = "What lopen builds, and what it waits for. See docs/reference/server.md."
LARGEST_BODY = 64 * 1024


def create_app(
    projects: ServedProjects, keys: AccessKeys, *, names: frozenset[str] = frozenset(), secure: bool = False
) -> AccessGate:
    """Return the ASGI application. `names`: host names that it answers to; `secure`: it speaks TLS."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        for project in projects:
            await project.close()

    app = FastAPI(
        title="lopen",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        max_body_size=LARGEST_BODY,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    feeds = {project.name: EventFeed(project) for project in projects}
    app.state.projects = projects
    app.state.feeds = feeds
    app.state.metrics = metrics.ProjectMetrics(projects)
    app.state.extension_rate = budget_routes.ExtensionRate()
    app.openapi = partial(describe, app)  # type: ignore[method-assign]  # the documented way to extend it
    add_problems(app)
    for routes in (session_routes, module_routes, budget_routes, event_stream, metrics):
        app.include_router(routes.routes)
    app.include_router(dashboard_routes(projects))

    def close() -> None:
        for feed in feeds.values():
            feed.close()

    return AccessGate(Tagged(app), keys=keys, names=names, secure=secure, close=close)


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


REFERENCE = {"$ref": "#/components/schemas/ProblemDetails"}
ALWAYS = {
    "400": "The request is not HTTP, or its body is not JSON.",
    "401": "The token is missing or wrong.",
    "403": "The request comes from another origin.",
    "404": "There is nothing of that name.",
    "408": "The body took too long.",
    "413": "The body is too large.",
    "421": "The server does not answer to that host name.",
    "422": "A parameter or a field is not valid.",
    "503": "The state cannot be read, or there are too many connections.",
}
ACTING = {"409": "The present state does not allow it, or a process works on the session."}
LIMITED = {"429": "Too many requests of this kind; `Retry-After` says when it is possible again."}
UNCHANGED = {"description": "Unchanged since the answer with the `ETag` that `If-None-Match` names."}


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the description of `app`, made once."""
    if app.openapi_schema:
        return app.openapi_schema
    found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = found["components"]["schemas"]
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    found["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "The token of `servers/token`."}
    }
    found["security"] = [{"token": []}]
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            _complete(operation, method, path)
    app.openapi_schema = found
    return found


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    """Add the responses that the gate and the error handlers give."""
    responses, streams = operation["responses"], path.endswith("/events")
    statuses = ALWAYS | ACTING | (LIMITED if path.endswith("/extend") else {})
    for status, description in statuses.items():
        content = {MEDIA_TYPE: {"schema": REFERENCE}}
        responses[status] = {"description": description, "content": content}
    if method == "get" and not streams:
        tag = {"description": "Of this answer.", "schema": {"type": "string"}}
        responses["200"].setdefault("headers", {})["ETag"] = tag
        responses["304"] = UNCHANGED
        condition = {
            "name": "If-None-Match",
            "in": "header",
            "schema": {"type": "string"},
        }
        operation.setdefault("parameters", []).append(condition)
    if streams:
        responses["200"]["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
