"""The dashboard: pages, styles and scripts that use the same API as any other client."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files as package_files
from typing import Annotated, Any

from fastapi import APIRouter, Header
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lopen import __version__
from lopen.core.events import TurnEnded
from lopen.core.hashing import content_hash
from lopen.limits.records import BudgetUsage
from lopen.server.served import OpenProject, ServedProjects

MOST_POINTS = 120
WIDTHS_S = (10, 30, 60, 300, 900, 3_600, 21_600, 86_400, 604_800)
MOST_TURNS = 20_000  # the newest ones
MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file's content, its media type and its tag."""

    content: bytes
    media_type: str
    tag: str


def read_files() -> dict[str, StaticFile]:
    """Return the static files by name."""
    folder = package_files("lopen.server.dashboard") / "static"
    found = {}
    for file in folder.iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in MEDIA_TYPES:
            found[file.name] = _file(file.read_text("utf-8"), suffix)
    return found


def page(files: Mapping[str, StaticFile]) -> StaticFile:
    """Return the page, which names the scripts so that the browser loads them side by side."""
    environment = Environment(
        loader=PackageLoader("lopen.server.dashboard"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
    )
    scripts = sorted(name for name in files if name.endswith(".js"))
    return _file(environment.get_template("index.html").render(scripts=scripts, version=__version__), ".html")


def _file(text: str, suffix: str) -> StaticFile:
    return StaticFile(text.encode(), MEDIA_TYPES[suffix], f'"{content_hash(text)}"')


def answer(file: StaticFile | None, known_tag: str) -> Response:
    """Return the file, or that it is as the browser knows it; raises 404 for None."""
    if file is None:
        raise HTTPException(404, "there is no such file")
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    if file.tag in known_tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


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


def spend(project: OpenProject) -> dict[str, Any]:
    """Return tokens, as budgets count them, in periods of equal length, those without any included.

    They are at most 120, but for more than 2.2 years of turns: the longest period is a week.
    """
    rows = project.store.database.connection.execute(
        "SELECT ts, body FROM events WHERE name=? ORDER BY seq DESC LIMIT ?", (TurnEnded.name, MOST_TURNS)
    ).fetchall()
    turns = [(datetime.fromisoformat(row["ts"]).timestamp(), json.loads(row["body"])) for row in rows]
    if not turns:
        return {"series": [], "points": [], "seconds": 0}
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
        "seconds": width,
    }


def _usage(turn: dict[str, Any]) -> BudgetUsage:
    return BudgetUsage(
        turn["input_tokens"], turn["output_tokens"], turn["cache_write_tokens"], turn["cache_read_tokens"]
    )
