"""A day of a million tool calls on a simulated clock: what it leaves on the disk, and how much memory it takes.

Everything is real but the model, which answers inside this process, and the disk's syncs: a wired session,
its conversation, tools, audit trail, circuits, budgets, events, log and upkeep. `python -m bench.day CALLS`
prints what was measured as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.session import approved
from lopen.loop.iteration import begin, bench_for, conversation_for
from lopen.loop.model_calls import ModelCalls
from lopen.loop.run import iterate
from lopen.models.messages import OnText, OnUsage, Request, Response, ToolUse, Usage, ignore_usage
from lopen.store.upkeep import counted, footprint
from lopen.workflow.steps import Step
from tests.fakes import FakeClock
from tests.project import plan, specification

CALLS = int(os.environ.get("LOPEN_BENCH_CALLS", "1000000"))
CALLS_A_TURN = 10
TURNS_AN_ITERATION = 12
DAY_S = 86_400.0
MB = 1024 * 1024
UNLIMITED: dict[str, Any] = {
    "circuit.max_iterations.threshold": 10**9,
    "budget.session_tokens": 0,
    "budget.task_tokens": 0,
    "budget.by_task_type.implement": 0,
    "workflow.record": False,
    "workflow.max_iterations": 10**9,
}


class Tireless:
    """Calls ten tools in every answer: it reads, looks and reports."""

    local = True

    def __init__(self) -> None:
        self._ids = count(1)

    def connect(self) -> None:
        """Nothing is needed."""

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        uses = [self._use(place) for place in range(CALLS_A_TURN)]
        content = [{"type": "tool_use", "id": u.id, "name": u.name, "input": u.input} for u in uses]
        usage = Usage(2_000, 300, 0, 9_000)
        return Response(f"msg_{uses[0].id}", request.model, content, uses, "tool_use", usage)

    def _use(self, place: int) -> ToolUse:
        """Four times read, three times list, three times report."""
        n = next(self._ids)
        name, given = (
            ("read_file", {"path": "README.md", "offset": 1, "limit": n % 997 + 1}),
            ("list_files", {"path": ".", "glob": f"*.{n % 89}"}),
            ("report_progress", {"message": f"call {n} of a long day, with a few words about it"}),
        )[max(0, place - 1) // 3]
        return ToolUse(f"toolu_{n:09}", name, given)


def day(calls: int) -> dict[str, float]:
    """Live through it; megabytes below `.lopen/` and of this process, at their highest."""
    clock = FakeClock(datetime(2026, 3, 1, tzinfo=UTC))
    highest = 0
    with approved(lambda _: plan(), specification(), clock=clock, **UNLIMITED) as (loop, _):
        folder, database = loop.project.root / ".lopen", loop.record.store.database
        database.connection.execute("PRAGMA synchronous=OFF")  # space is measured, not the disk
        while loop.record.journal.session.step is not Step.ITERATE_THROUGH_TASKS:
            iterate(loop)
        access = loop.models.calls
        assert isinstance(access, ModelCalls)
        access.model = Tireless()
        made = 0
        while made < calls:
            begin(loop, ())
            talk = conversation_for(loop, bench_for(loop))
            for turn in range(1, TURNS_AN_ITERATION + 1):
                talk.counts.turn = turn
                talk.runner.begin_turn(turn)
                outcome = talk._turn()
                assert outcome is None, outcome
                clock.advance(DAY_S * CALLS_A_TURN / calls)
            made += TURNS_AN_ITERATION * CALLS_A_TURN
            highest = max(highest, counted(footprint(folder)))
        kept = loop.record.store.database.connection.execute("SELECT count(*) FROM tool_calls").fetchone()[0]
    peak = _peak_mib()
    figures = {"calls": made, "kept": kept}
    return figures | {"state_mb": highest / MB, "peak_mib": peak}


def _peak_mib() -> float:
    """The most memory this process held. `ru_maxrss` would count what its parent held when it was started."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(calls: int) -> dict[str, float]:
    """The same in a process of its own, whose memory is then the day's alone."""
    argv = [sys.executable, "-m", "bench.day", str(calls)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])  # behind what the session said
    return found


def rows() -> Iterator[Row]:
    """The day's two limits."""
    found = measured(CALLS)
    detail = f"{found['calls']:,.0f} calls"
    yield Row("a day's .lopen/ at its largest", found["state_mb"], 5, "MB", detail=detail)
    yield Row("a day's process at its largest", found["peak_mib"], 150, "MiB", detail=detail)


if __name__ == "__main__":
    print(json.dumps(day(int(sys.argv[1]) if len(sys.argv) > 1 else CALLS)))
