"""The dashboard's pages. They show the values that the API returns, and their forms call the API's routes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from lopen.application.open_store import store_with
from lopen.application.overview import ProjectOverview, Reading, look_over, read_dossier
from lopen.application.reports import module_diff, task_changes, task_details
from lopen.core.errors import StorageError, StoreUnreachable
from lopen.core.events import TurnEnded
from lopen.limits.records import Alert
from lopen.models.messages import Usage
from lopen.server.dashboard import gate, home, limits, module, task, workers
from lopen.server.dashboard.markup import Place
from lopen.server.module_routes import gate as gate_object
from lopen.server.served import Chosen, OpenProject, ServedProject, ServedProjects
from lopen.server.session_routes import ModuleName, TaskId, listed_sessions
from lopen.store.folder import is_worked_on

MOST_POINTS = 120
WIDTHS_S = (10, 30, 60, 300, 900, 3_600, 21_600, 86_400, 604_800)
MOST_TURNS = 20_000  # the newest ones
EVENTS = 400  # on one page
SESSIONS = 200
FILES = StaticFiles(packages=[("lopen.server.dashboard", "static")])
routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
Wanted = Annotated[str | None, Query(max_length=255, alias="session")]


@dataclass(frozen=True, slots=True)
class ProjectView:
    """The content of a project's page: the open project, the page's place, and the project's overview."""

    opened: OpenProject
    place: Place
    reading: Reading
    overview: ProjectOverview

    @property
    def waits(self) -> int:
        """The number of modules that wait for the person."""
        return sum(each.wait is not None for each in self.overview.modules)

    def module(self, name: str, session: str | None) -> module.ModuleView:
        """Return a module with its newest session, or with the one that is wanted."""
        found = read_dossier(self.reading, name, session)
        return module.ModuleView(self.place, found, self.overview.limits.budgets, self.waits)


async def _page(request: Request, project: ServedProject, draw: Callable[[ProjectView], str]) -> HTMLResponse:
    """Return a page of a project."""
    projects: ServedProjects = request.app.state.projects
    place = Place(project.name, projects.several, project.has_queue)

    def work(opened: OpenProject) -> str:
        reading = opened.read()
        return draw(ProjectView(opened, place, reading, look_over(reading)))

    return HTMLResponse(await project.run(work))


@routes.get("/")
async def overview_page(request: Request) -> HTMLResponse:
    """Return the first page, of all projects."""
    projects: ServedProjects = request.app.state.projects
    found = [
        (
            Place(each.name, projects.several, each.has_queue),
            await each.run(lambda opened: look_over(opened.read())),
        )
        for each in projects
    ]
    return HTMLResponse(home.home(found))


@routes.get("/limits")
async def limits_page(request: Request, project: Chosen) -> HTMLResponse:
    """Return the page of budgets, circuits, alerts and spend."""

    def draw(shown: ProjectView) -> str:
        alerts = _alerts(shown.opened)
        return limits.limits_page(shown.place, shown.overview, alerts, spend(shown.opened), shown.waits)

    return await _page(request, project, draw)


def _alerts(opened: OpenProject) -> list[Alert]:
    try:
        with opened.limits() as store:
            return list(reversed(store.alerts(None, acknowledged=False)))
    except StoreUnreachable:  # the page says so
        return []


@routes.get("/workers")
async def workers_page(request: Request, project: Chosen) -> HTMLResponse:
    """Return the page of workers, their leases, and what the queue's builds wait for."""

    def draw(view: ProjectView) -> str:
        unknown = ""
        try:
            found = view.opened.orders()
        except StorageError as error:
            found, unknown = [], error.message
        return workers.workers_page(view.place, found, unknown, view.waits)

    return await _page(request, project, draw)


@routes.get("/history")
async def history_page(request: Request, project: Chosen) -> HTMLResponse:
    """Return the page of all sessions."""

    def draw(shown: ProjectView) -> str:
        rows, _ = listed_sessions(shown.opened, 0, SESSIONS)
        return home.history(shown.place, rows, shown.waits)

    return await _page(request, project, draw)


@routes.get("/modules/{name}")
async def module_page(
    request: Request, project: Chosen, name: ModuleName, session: Wanted = None
) -> HTMLResponse:
    """Return the page of a module."""

    def draw(shown: ProjectView) -> str:
        standing = next((each for each in shown.overview.modules if each.module == name), None)
        if standing is not None and not standing.session:
            return module.unstarted_page(shown.place, standing, shown.waits)
        return module.module_page(shown.module(name, session))

    return await _page(request, project, draw)


@routes.get("/modules/{name}/tasks/{task_id}")
async def task_page(
    request: Request, project: Chosen, name: ModuleName, task_id: TaskId, session: Wanted = None
) -> HTMLResponse:
    """Return the page of a task."""

    def draw(shown: ProjectView) -> str:
        view = shown.module(name, session)
        store = store_with(shown.opened.store, view.session.id)
        return task.task_page(view, task_details(shown.opened.context, store, view.session, task_id))

    return await _page(request, project, draw)


@routes.get("/modules/{name}/diff")
async def diff_page(
    request: Request, project: Chosen, name: ModuleName, session: Wanted = None
) -> HTMLResponse:
    """Return the page of a module's change."""

    def draw(shown: ProjectView) -> str:
        view = shown.module(name, session)
        return module.diff_page(view, module_diff(shown.opened.context, view.session))

    return await _page(request, project, draw)


@routes.get("/modules/{name}/events")
async def events_page(
    request: Request,
    project: Chosen,
    name: ModuleName,
    session: Wanted = None,
    before: Annotated[int, Query(ge=0, le=2**63 - 1)] = 2**63 - 1,
) -> HTMLResponse:
    """Return a page of a session's events; those before an event are on another."""

    def draw(shown: ProjectView) -> str:
        view = shown.module(name, session)
        found = [each for each in view.dossier.history.events if each.seq < before]
        kept = found[-EVENTS:]
        more = {"session": view.session.id, "before": str(kept[0].seq)} if len(found) > len(kept) else None
        return module.events_page(view, kept, shown.place.module(name, "events", **more) if more else None)

    return await _page(request, project, draw)


@routes.get("/modules/{name}/specification")
async def specification_page(request: Request, project: Chosen, name: ModuleName) -> HTMLResponse:
    """Return the gate: the specification, and its approval."""

    def draw(shown: ProjectView) -> str:
        found, working = gate_object(shown.opened, name), is_worked_on(shown.opened.root, name)
        return gate.gate_page(shown.place, found, working=working, waits=shown.waits)

    return await _page(request, project, draw)


@routes.get("/modules/{name}/report")
async def report_file(
    request: Request, project: Chosen, name: ModuleName, session: Wanted = None
) -> Response:
    """Return the module's dossier as one file that needs nothing else."""

    def draw(shown: ProjectView) -> str:
        view = shown.module(name, session)
        return module.report_page(view, task_changes(shown.opened.context, view.session))

    page = await _page(request, project, draw)
    page.headers["content-disposition"] = (
        f"attachment; filename*=UTF-8''{Place('').href(name)[1:]}-report.html"
    )
    return page


def spend(project: OpenProject) -> dict[str, Any]:
    """Return tokens, as budgets count them, in periods of equal length, those without any included.

    They are at most 120, but for more than 2.2 years of turns: the longest period is a week.
    """
    rows = project.store.database.connection.execute(
        "SELECT ts, body FROM events WHERE name=? ORDER BY seq DESC LIMIT ?", (TurnEnded.name, MOST_TURNS)
    ).fetchall()
    turns = [(datetime.fromisoformat(row["ts"]).timestamp(), json.loads(row["body"])) for row in rows]
    if not turns:
        return {"series": [], "points": []}
    first, last = turns[-1][0], turns[0][0]
    width = next((w for w in WIDTHS_S if (last - first) / w < MOST_POINTS - 1), WIDTHS_S[-1])
    periods: dict[int, Counter[str]] = {
        n: Counter() for n in range(int(first // width), int(last // width) + 1)
    }
    for at, turn in turns:
        periods.setdefault(int(at // width), Counter())[turn["model"]] += _usage(turn).billed()
    return {
        "series": sorted({model for counts in periods.values() for model in counts}),
        "points": [
            {"time": datetime.fromtimestamp(n * width, UTC).isoformat(), "tokens": counts}
            for n, counts in sorted(periods.items())
        ],
    }


def _usage(turn: dict[str, Any]) -> Usage:
    return Usage(
        turn["input_tokens"], turn["output_tokens"], turn["cache_write_tokens"], turn["cache_read_tokens"]
    )
