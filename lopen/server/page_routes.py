"""The dashboard's pages. They show the values that the API returns, and their forms call the API's routes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request
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
from lopen.server.served import OpenProject, ServedProjects
from lopen.server.session_routes import listed_sessions
from lopen.store.folder import is_worked_on

PERIODS = 60  # of the chart
MOST_TURNS = 20_000  # the newest ones
EVENTS = 400  # on one page
SESSIONS = 200
LAST = 2**63 - 1  # the greatest number of an event
FILES = StaticFiles(packages=[("lopen.server.dashboard", "static")])
routes = APIRouter()


@dataclass(frozen=True, slots=True)
class PageView:
    """The values of a page: the open project, the page's place, and the parts of the address that a person opened."""

    opened: OpenProject
    place: Place
    reading: Reading
    overview: ProjectOverview
    asked: Mapping[str, str]

    @property
    def waits(self) -> int:
        """The number of modules that wait for the person."""
        return sum(each.wait is not None for each in self.overview.modules)

    @property
    def module(self) -> module.ModuleView:
        """The module that the address names, with its newest session or the one that it names too."""
        found = read_dossier(self.reading, self.asked["name"], self.asked.get("session"))
        return module.ModuleView(self.place, found, self.overview.limits.budgets, self.waits)


def limits_page(view: PageView) -> str:
    """Return the page of budgets, circuits, alerts and spend."""
    return limits.limits_page(view.place, view.overview, _alerts(view.opened), spend(view.opened), view.waits)


def _alerts(opened: OpenProject) -> list[Alert]:
    try:
        with opened.limits() as store:
            return list(reversed(store.alerts(None, acknowledged=False)))
    except StoreUnreachable:  # the page says so
        return []


def workers_page(view: PageView) -> str:
    """Return the page of workers, their leases, and the queue."""
    try:
        return workers.workers_page(view.place, view.opened.orders(), "", view.waits)
    except StorageError as error:
        return workers.workers_page(view.place, [], error.message, view.waits)


def history_page(view: PageView) -> str:
    """Return the page of all sessions."""
    return home.history(view.place, listed_sessions(view.opened, 0, SESSIONS)[0], view.waits)


def module_page(view: PageView) -> str:
    """Return the page of a module."""
    standing = next((each for each in view.overview.modules if each.module == view.asked["name"]), None)
    if standing is not None and not standing.session:
        return module.unstarted_page(view.place, standing, view.waits)
    return module.module_page(view.module)


def task_page(view: PageView) -> str:
    """Return the page of a task."""
    shown = view.module
    store = store_with(view.opened.store, shown.session.id)
    return task.task_page(
        shown, task_details(view.opened.context, store, shown.session, view.asked["task_id"])
    )


def diff_page(view: PageView) -> str:
    """Return the page of a module's change."""
    return module.diff_page(view.module, module_diff(view.opened.context, view.module.session))


def events_page(view: PageView) -> str:
    """Return a page of a session's events; those before an event are on another."""
    shown, before = view.module, view.asked.get("before", "")
    last = int(before) if before.isdecimal() and len(before) < len(str(LAST)) else LAST
    found = [each for each in shown.dossier.history.events if each.seq < last]
    kept, earlier = found[-EVENTS:], None
    if len(found) > len(kept):
        numbered = {"session": shown.session.id, "before": str(kept[0].seq)}
        earlier = view.place.module(shown.session.module, "events", **numbered)
    return module.events_page(shown, kept, earlier)


def specification_page(view: PageView) -> str:
    """Return the gate: the specification, and its approval."""
    name = view.asked["name"]
    found, working = gate_object(view.opened, name), is_worked_on(view.opened.root, name)
    return gate.gate_page(view.place, found, working=working, waits=view.waits)


def report_file(view: PageView) -> str:
    """Return the module's dossier as one file that needs nothing else."""
    return module.report_page(view.module, task_changes(view.opened.context, view.module.session))


PAGES: Mapping[str, Callable[[PageView], str]] = {
    "/limits": limits_page,
    "/workers": workers_page,
    "/history": history_page,
    "/modules/{name}": module_page,
    "/modules/{name}/tasks/{task_id}": task_page,
    "/modules/{name}/diff": diff_page,
    "/modules/{name}/events": events_page,
    "/modules/{name}/specification": specification_page,
    "/modules/{name}/report": report_file,
}


def _served(draw: Callable[[PageView], str]) -> Callable[[Request], Awaitable[Response]]:
    """Return the route that draws a page in its project's thread."""

    async def respond(request: Request) -> Response:
        projects: ServedProjects = request.app.state.projects
        project = projects.named(request.query_params.get("project"))
        place = Place(project.name, projects.several, project.has_queue)
        asked = {**request.query_params, **request.path_params}

        def work(opened: OpenProject) -> str:
            reading = opened.read()
            return draw(PageView(opened, place, reading, look_over(reading), asked))

        page = HTMLResponse(await project.run(work))
        if draw is report_file:
            file = f"{Place('').href(asked['name'])[1:]}-report.html"
            page.headers["content-disposition"] = f"attachment; filename*=UTF-8''{file}"
        return page

    return respond


for path, drawn in PAGES.items():
    routes.add_route(path, _served(drawn), include_in_schema=False)


@routes.get("/", include_in_schema=False)
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


def spend(project: OpenProject) -> limits.Spend:
    """Return tokens, as budgets count them, in periods of equal length from the first turn to the last."""
    rows = project.store.database.connection.execute(
        "SELECT ts, body FROM events WHERE name=? ORDER BY seq DESC LIMIT ?", (TurnEnded.name, MOST_TURNS)
    ).fetchall()
    turns = [(datetime.fromisoformat(row["ts"]), json.loads(row["body"])) for row in reversed(rows)]
    if not turns:
        return None
    first, last = turns[0][0], turns[-1][0]
    length = max((last - first).total_seconds(), 1.0)
    periods = {model: [0] * PERIODS for model in sorted({turn["model"] for _, turn in turns})}
    for at, turn in turns:
        kinds = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens")
        number = min(PERIODS - 1, int((at - first).total_seconds() / length * PERIODS))
        periods[turn["model"]][number] += Usage(*(turn[kind] for kind in kinds)).billed()
    return first, last, periods
