"""The application: routes behind the access gate, and the OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lopen import __version__
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

    return AccessGate(app, keys=keys, names=names, secure=secure, close=close)


REFERENCE = {"$ref": "#/components/schemas/ProblemDetails"}
ALWAYS = {
    "400": "The request is not HTTP, or its body is not JSON.",
    "401": "The token is missing or wrong.",
    "403": "The request comes from another origin.",
    "404": "There is nothing of that name.",
    "413": "The body is too large.",
    "421": "The server does not answer to that host name.",
    "422": "A parameter or a field is not valid.",
    "503": "The state cannot be read, or there are too many connections.",
}
ACTING = {"409": "The present state does not allow it, or a process works on the session."}
LIMITED = {"429": "Too many requests of this kind; `Retry-After` says when it is possible again."}


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
        for operation in methods.values():
            _complete(operation, path)
    app.openapi_schema = found
    return found


def _complete(operation: dict[str, Any], path: str) -> None:
    """Add the responses that the gate and the error handlers give."""
    responses, streams = operation["responses"], path.endswith("/events")
    statuses = ALWAYS | ACTING | (LIMITED if path.endswith("/extend") else {})
    for status, description in statuses.items():
        content = {MEDIA_TYPE: {"schema": REFERENCE}}
        responses[status] = {"description": description, "content": content}
    if streams:
        responses["200"]["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
