"""The dashboard: its page, and the tokens over time that only the page shows. It uses the same API as any other client."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from lopen.core.events import TurnEnded
from lopen.limits.records import BudgetUsage
from lopen.server.served import Chosen, OpenProject

MOST_POINTS = 120
WIDTHS_S = (10, 30, 60, 300, 900, 3_600, 21_600, 86_400, 604_800)
MOST_TURNS = 20_000  # the newest ones
FILES = StaticFiles(packages=[(__name__, "static")])
routes = APIRouter(include_in_schema=False)


@routes.get("/")
async def overview(request: Request) -> Response:
    """Return the page; the caller checked token, Host and Origin."""
    return await FILES.get_response("index.html", request.scope)


@routes.get("/dashboard/spend")
async def tokens_over_time(project: Chosen) -> dict[str, Any]:
    """Return the tokens of the project's turns over time."""
    return await project.run(spend)


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
