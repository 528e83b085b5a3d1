"""The dashboard: pages, styles and scripts that use the same API as any other client."""

from __future__ import annotations

from fastapi import APIRouter

from lopen.server.served import ServedProjects


def dashboard_routes(projects: ServedProjects) -> APIRouter:
    """Return the routes of the dashboard; the caller checked token, Host and Origin before any of them runs."""
    return APIRouter(include_in_schema=False)
