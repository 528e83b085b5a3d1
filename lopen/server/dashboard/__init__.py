"""The dashboard: pages, styles and scripts that use the same API as any other client."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from lopen.server.dashboard.files import answer, page, read_files
from lopen.server.dashboard.spend import spend
from lopen.server.served import ServedProjects


def dashboard_routes(projects: ServedProjects) -> APIRouter:
    """Return the routes of the dashboard; the caller checked token, Host and Origin before any of them runs."""
    routes = APIRouter(include_in_schema=False)
    files = read_files()
    first = page(files)

    @routes.get("/")
    async def overview(if_none_match: Annotated[str, Header()] = "") -> Response:
        return answer(first, if_none_match)

    @routes.get("/static/{name}")
    async def static(name: str, if_none_match: Annotated[str, Header()] = "") -> Response:
        return answer(files.get(name), if_none_match)

    @routes.get("/dashboard/spend")
    async def tokens_over_time(project: str | None = None) -> dict[str, Any]:
        return await projects.named(project).run(spend)

    return routes
