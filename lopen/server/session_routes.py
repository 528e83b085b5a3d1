"""Routes of modules and sessions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from lopen.application.session_report import module_object, session_object, session_summary
from lopen.documents.modules import find_modules
from lopen.server.served import OpenProject, ServedProjects


def session_routes(projects: ServedProjects) -> APIRouter:
    """Return the routes."""
    routes = APIRouter()

    @routes.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @routes.get("/api/modules")
    async def modules(project: str | None = None) -> dict[str, Any]:
        found = await projects.named(project).run(_modules)
        return {"modules": found, "total": len(found)}

    @routes.get("/api/sessions")
    async def sessions(project: str | None = None) -> dict[str, Any]:
        found = await projects.named(project).run(_sessions)
        return {"sessions": found, "total": len(found)}

    @routes.get("/api/sessions/{session_id}")
    async def session(session_id: str, project: str | None = None) -> dict[str, Any]:
        return await projects.named(project).run(_session, session_id)

    return routes


def _modules(project: OpenProject) -> list[dict[str, Any]]:
    with project.limits() as limits:
        budgets = {budget.budget_id: budget for budget in limits.budgets()}
    return [
        module_object(project.store, name, budgets.get(f"module:{name}"))
        for name in find_modules(project.root)
    ]


def _sessions(project: OpenProject) -> list[dict[str, Any]]:
    return [session_summary(project.store.load(i)) for i in project.store.ids()]


def _session(project: OpenProject, session_id: str) -> dict[str, Any]:
    return session_object(project.store, project.store.load(session_id))
