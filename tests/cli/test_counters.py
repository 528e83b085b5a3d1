"""The guardrails' counters as `lopen status` shows them."""

from __future__ import annotations

from datetime import UTC, datetime

from lopen.application.session_report import Counter, counters
from lopen.guardrails.call_history import CallHistory
from lopen.limits.circuits import MAIN, AgentRow, CircuitState, RuleBook
from lopen.settings.schema import Settings
from lopen.workflow.pauses import FailedBoundaries, FailuresInRow
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.sessions import changed

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def session() -> Session:
    tasks = (
        Task("t1", "Parse", failures=3),
        Task("t2", "Print", added=True),
        Task("t3", "Skip", failures=4, given_up="no"),
    )
    return changed(
        Session("calc-20260301-1", "calc", NOW), tree=TaskTree((Component("core", "Core", tasks=tasks),)),
        iterations=7, iterations_granted=100, planned_tasks=2, boundary_failures=1, clarifications=1,
        pressure={"t1": "intervention"}, confirmed=(FailuresInRow("t1", 5), FailedBoundaries(3)),
    )  # fmt: skip


def test_every_counter_has_its_limit() -> None:
    calls = CallHistory(iteration_count=12, edited=("a.py",))
    circuit = CircuitState("session:s", calls=calls, rows={MAIN: AgentRow(same_calls=2)})
    told = [str(c) for c in counters(session(), Settings(), circuit, RuleBook())]
    assert told == [
        "iterations: 7/100",
        "questions asked: 1/1",
        "failures in a row of t1: 3/5 (intervention)",
        "failed boundaries in a row: 1/6",
        "added tasks: 1/2",
        "files edited since the last test run: 1/5",
        "calls since the last passing verify: 12/50",
        "identical calls in a row: 2/5",
    ]


def test_a_failing_step_is_counted_under_its_name() -> None:
    failing = changed(Session("s", "m", NOW), step_failures=2)
    assert Counter("failures in a row of draft_specification", 2, 3) in counters(
        failing, Settings(), None, RuleBook()
    )
