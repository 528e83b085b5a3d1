"""The dashboard's pages. They show the values that the API returns, and their forms call the API's routes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from lopen.application.open_store import store_with
from lopen.application.overview import ProjectOverview, look_over, read_dossier
from lopen.application.reports import module_diff, session_summary, task_changes, task_details
from lopen.core.errors import StoreUnreachable
from lopen.core.events import TurnEnded
from lopen.limits.records import Alert, BudgetUsage
from lopen.server.dashboard import gate, home, limits, module, task
from lopen.server.dashboard.markup import Place
from lopen.server.module_routes import gate as gate_object
from lopen.server.served import Chosen, OpenProject, ServedProject, ServedProjects
from lopen.server.session_routes import ModuleName, TaskId
from lopen.store.archives import ArchivedSession, archived_sessions
from lopen.store.folder import is_worked_on
from lopen.workflow.session import Session

MOST_POINTS = 120
WIDTHS_S = (10, 30, 60, 300, 900, 3_600, 21_600, 86_400, 604_800)
MOST_TURNS = 20_000  # the newest ones
EVENTS = 400  # on one page
SESSIONS = 200
FILES = StaticFiles(packages=[("lopen.server.dashboard", "static")])
routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
Wanted = Annotated[str | None, Query(max_length=255, alias="session")]


def _place(request: Request, project: ServedProject) -> Place:
    projects: ServedProjects = request.app.state.projects
    return Place(project.name, projects.several)


def _waits(overview: ProjectOverview) -> int:
    return sum(each.wait is not None for each in overview.modules)


def _shown(opened: OpenProject, place: Place, name: str, session: str | None) -> module.ModuleView:
    reading = opened.read()
    overview = look_over(reading)
    return module.ModuleView(
        place, read_dossier(reading, name, session), overview.limits.budgets, _waits(overview)
    )


async def _page(
    request: Request,
    project: ServedProject,
    name: str,
    session: str | None,
    draw: Callable[[OpenProject, module.ModuleView], str],
) -> HTMLResponse:
    """Return a page of a module's session."""
    place = _place(request, project)

    def work(opened: OpenProject) -> str:
        return draw(opened, _shown(opened, place, name, session))

    return HTMLResponse(await project.run(work))


@routes.get("/")
async def overview_page(request: Request) -> HTMLResponse:
    """Return the first page, of all projects."""
    projects: ServedProjects = request.app.state.projects
    found = [
        (_place(request, each), await each.run(lambda opened: look_over(opened.read()))) for each in projects
    ]
    return HTMLResponse(home.home(found))


@routes.get("/limits")
async def limits_page(request: Request, project: Chosen) -> HTMLResponse:
    """Return the page of budgets, circuits, alerts and spend."""
    place = _place(request, project)

    def work(opened: OpenProject) -> str:
        overview = look_over(opened.read())
        return limits.limits_page(place, overview, _alerts(opened), spend(opened), _waits(overview))

    return HTMLResponse(await project.run(work))


def _alerts(opened: OpenProject) -> list[Alert]:
    try:
        with opened.limits() as store:
            return list(reversed(store.alerts(None, acknowledged=False)))
    except StoreUnreachable:  # the page says so
        return []


@routes.get("/history")
async def history_page(request: Request, project: Chosen) -> HTMLResponse:
    """Return the page of all sessions."""
    place = _place(request, project)

    def work(opened: OpenProject) -> str:
        sessions: list[Session | ArchivedSession] = [
            *opened.store.readable(opened.store.ids()[:SESSIONS]),
            *archived_sessions(opened.store.database),
        ]
        rows = [session_summary(opened.root, opened.store, each) for each in sessions[:SESSIONS]]
        return home.history(place, rows, _waits(look_over(opened.read())))

    return HTMLResponse(await project.run(work))


@routes.get("/modules/{name}")
async def module_page(
    request: Request, project: Chosen, name: ModuleName, session: Wanted = None
) -> HTMLResponse:
    """Return the page of a module."""
    place = _place(request, project)

    def work(opened: OpenProject) -> str:
        reading = opened.read()
        overview = look_over(reading)
        standing = next((each for each in overview.modules if each.module == name), None)
        if standing is not None and not standing.session:
            return module.unstarted_page(place, standing, _waits(overview))
        shown = module.ModuleView(
            place, read_dossier(reading, name, session), overview.limits.budgets, _waits(overview)
        )
        return module.module_page(shown)

    return HTMLResponse(await project.run(work))


@routes.get("/modules/{name}/tasks/{task_id}")
async def task_page(
    request: Request, project: Chosen, name: ModuleName, task_id: TaskId, session: Wanted = None
) -> HTMLResponse:
    """Return the page of a task."""

    def draw(opened: OpenProject, shown: module.ModuleView) -> str:
        return task.task_page(
            shown,
            task_details(opened.context, store_with(opened.store, shown.session.id), shown.session, task_id),
        )

    return await _page(request, project, name, session, draw)


@routes.get("/modules/{name}/diff")
async def diff_page(
    request: Request, project: Chosen, name: ModuleName, session: Wanted = None
) -> HTMLResponse:
    """Return the page of a module's change."""
    return await _page(
        request,
        project,
        name,
        session,
        lambda opened, shown: module.diff_page(shown, module_diff(opened.context, shown.session)),
    )


@routes.get("/modules/{name}/events")
async def events_page(
    request: Request,
    project: Chosen,
    name: ModuleName,
    session: Wanted = None,
    before: Annotated[int, Query(ge=0, le=2**63 - 1)] = 2**63 - 1,
) -> HTMLResponse:
    """Return a page of a session's events; those before an event are on another."""

    def draw(opened: OpenProject, shown: module.ModuleView) -> str:
        found = [each for each in shown.dossier.history.events if each.seq < before]
        kept = found[-EVENTS:]
        more = {"session": shown.session.id, "before": str(kept[0].seq)} if len(found) > len(kept) else None
        return module.events_page(shown, kept, shown.place.module(name, "events", **more) if more else None)

    return await _page(request, project, name, session, draw)


@routes.get("/modules/{name}/specification")
async def specification_page(request: Request, project: Chosen, name: ModuleName) -> HTMLResponse:
    """Return the gate: the specification, and its approval."""
    place = _place(request, project)

    def work(opened: OpenProject) -> str:
        found = gate_object(opened, name)
        return gate.gate_page(
            place, found, working=is_worked_on(opened.root, name), waits=_waits(look_over(opened.read()))
        )

    return HTMLResponse(await project.run(work))


@routes.get("/modules/{name}/report")
async def report_file(
    request: Request, project: Chosen, name: ModuleName, session: Wanted = None
) -> Response:
    """Return the module's dossier as one file that needs nothing else."""

    def draw(opened: OpenProject, shown: module.ModuleView) -> str:
        return module.report_page(shown, task_changes(opened.context, shown.session))

    page = await _page(request, project, name, session, draw)
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


def _usage(turn: dict[str, Any]) -> BudgetUsage:
    return BudgetUsage(
        turn["input_tokens"], turn["output_tokens"], turn["cache_write_tokens"], turn["cache_read_tokens"]
    )
