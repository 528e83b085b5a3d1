"""The application: routes behind the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from lopen import __version__
from lopen.server.access import AccessKeys
from lopen.server.dashboard import dashboard_routes
from lopen.server.event_stream import stream_routes
from lopen.server.feed import EventFeed
from lopen.server.gate import Gate
from lopen.server.problems import add_problems
from lopen.server.served import ServedProjects
from lopen.server.session_routes import session_routes

DESCRIPTION = "What lopen builds, and what it waits for. See docs/reference/server.md."


def create_app(
    projects: ServedProjects, keys: AccessKeys, *, names: frozenset[str] = frozenset(), secure: bool = False
) -> Gate:
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
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    add_problems(app)
    feeds = {project.name: EventFeed(project) for project in projects}

    def close() -> None:
        for feed in feeds.values():
            feed.close()

    app.include_router(session_routes(projects))
    app.include_router(stream_routes(projects, feeds))
    app.include_router(dashboard_routes(projects))
    return Gate(app, keys=keys, names=names, secure=secure, close=close)
