"""What one pass of the guardrails costs after 10, 10³, 10⁵ and 10⁶ tool calls.

A pass is all of it: the facts taken from the history of calls, seven checks, the corrections.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from bench.rows import Row
from lopen.guardrails.call_history import CallEnd, CallHistory
from lopen.guardrails.guard import BudgetFacts, ChurnFacts, GuardFacts, ScopeFacts
from lopen.guardrails.habits import HabitLimits, circles, find_habits, undisciplined
from lopen.guardrails.pipeline import GUARDRAILS, run
from lopen.workflow.steps import Step

SIZES = (10, 1_000, 100_000, 1_000_000)
ROUNDS = 2_000

FACTS = GuardFacts(
    "auth",
    "auth-20260301-1",
    Step.ITERATE_THROUGH_TASKS,
    datetime(2026, 3, 1, tzinfo=UTC),
    "t1",
    "login",
    budget=BudgetFacts("warning", "budget module:auth: 85% used"),
    churn=ChurnFacts(2, ("a test failed",)),
    scope=ScopeFacts(2, 5),
)
REREAD = CallEnd("read_file", "README.md", resource="README.md", content_hash="h")


def call(i: int) -> CallEnd:
    """The i-th call of a busy session: reads, runs, edits over a thousand files, tests now and then."""
    path = f"src/part{i % 1_000}.py"
    match i % 5:
        case 0 | 1:
            return CallEnd("read_file", path, resource=path, content_hash=f"{i % 7}")
        case 2:
            return CallEnd(
                "run_command",
                f"make part{i % 50}",
                resource=f"make part{i % 50}",
                exit_code=i % 3,
                content_hash="o",
            )
        case 3:
            return CallEnd("edit_file", path, resource=path, edited=(path,))
        case _:
            return CallEnd("verify_tests", "verify_tests", exit_code=0)


def one_pass(calls: CallHistory) -> tuple[str, ...]:
    """Facts, checks, corrections."""
    facts = replace(FACTS, circular=circles(calls, ""), discipline=undisciplined(calls, "", HabitLimits()))
    return run(GUARDRAILS, facts).corrections


def best(work: Callable[[], object]) -> float:
    """The shortest of many runs, in seconds: what the work itself costs, without the machine's noise."""
    shortest = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - began)
    return shortest


def counted(calls: CallHistory, end: CallEnd) -> CallHistory:
    """Count one call as the gate does."""
    begun = calls.announced(end.signature, of_task=True)
    after = begun.ended(end)
    return after.found(find_habits(begun, after, end, HabitLimits()))


def after_that_many(made: int, size: int, calls: CallHistory) -> CallHistory:
    """Return a history of `size` calls, of which `calls` holds `made`; the last three read one file again."""
    for i in range(made, size - 3):
        calls = counted(calls, call(i))
    for _ in range(3):
        calls = counted(calls, REREAD)
    return calls


def rows() -> Iterator[Row]:
    """The last pass beside the first, and the longest of all."""
    calls, made = CallHistory(), 0
    passes: list[float] = []
    for size in SIZES:
        calls, made = after_that_many(made, size, calls), size
        passes.append(best(partial(one_pass, calls)))
    detail = ", ".join(f"{size:,}: {taken * 1e6:.1f} µs" for size, taken in zip(SIZES, passes, strict=True))
    yield Row(
        "a pass with 10⁶ calls in the history, over one with 10", passes[-1] / passes[0], 1.5, detail=detail
    )
    yield Row("the longest pass", max(passes) * 1e3, 1.0, unit="ms")
