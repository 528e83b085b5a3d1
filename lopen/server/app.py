"""The application: routes behind the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI

from lopen import __version__
from lopen.server import budget_routes, event_stream, metrics, module_routes, session_routes
from lopen.server.access import AccessKeys
from lopen.server.dashboard import dashboard_routes
from lopen.server.description import describe
from lopen.server.feed import EventFeed
from lopen.server.gate import AccessGate
from lopen.server.problems import add_problems
from lopen.server.served import ServedProjects
from lopen.server.tagging import Tagged

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
