"""The order of the guards, and what is told of their verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.errors import ExitCode, Stopped
from lopen.guardrails.guard import (
    BudgetFacts,
    Category,
    GuardFacts,
    Guardrail,
    GuardResult,
    OpenCircuit,
)
from lopen.guardrails.habits import lasting_habits
from lopen.guardrails.pipeline import GUARDRAILS, events, run
from lopen.settings.schema import ToolDiscipline
from lopen.workflow.pauses import Halt
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import State, Task
from tests.guardrails.examples import facts, fed, ran, read

CROSSINGS = ["", "warning", "confirmation", "pause"]
STOP = Halt("guardrail", "stop", "lopen resume")


def guard(order: int, name: str, pause: Halt | None = None, *, short: bool = False) -> Guardrail:
    """A row that warns, or blocks with `pause`."""
    result = GuardResult(name, f"{name} says so", pause=pause)
    return Guardrail(order, name, Category.TOOL_DISCIPLINE, short, lambda _: result)


def raising(error: BaseException) -> Guardrail:
    def check(_: GuardFacts) -> GuardResult:
        raise error

    return Guardrail(1, "broken", Category.QUALITY_GATES, True, check)


def test_the_table_is_the_contracts() -> None:
    assert [(g.order, g.name, g.category.value, g.short_circuit) for g in GUARDRAILS] == [
        (100, "budget", "resource limits", True),
        (110, "circuit_breaker", "resource limits", True),
        (200, "churn", "progress integrity", True),
        (210, "circular_behaviour", "progress integrity", False),
        (220, "scope_continuity", "progress integrity", False),
        (300, "quality_gate", "quality gates", True),
        (400, "tool_discipline", "tool discipline", False),
    ]


DONE = Task("t1", "T", state=State.COMPLETE)


@pytest.mark.parametrize(
    ("given_facts", "name"),
    [
        (facts(budget=BudgetFacts("pause", "spent", "lopen budget extend")), "budget"),
        (facts(circuit=OpenCircuit("s", "duplicate_call", "again", needs_ack=True)), "circuit_breaker"),
        (facts(Task("t1", "T", failures=3)), "churn"),
        (facts(original_scope=9), "scope_continuity"),
        (facts(DONE), "quality_gate"),
    ],
)
def test_each_row_that_may_block_blocks_by_its_own_facts(given_facts: GuardFacts, name: str) -> None:
    passed = run(GUARDRAILS, given_facts)
    assert [r.guard for r in passed.raised] == [name]
    assert passed.pause is not None
    assert passed.pause.command.startswith("lopen ")


@given(st.permutations(GUARDRAILS))
def test_registration_order_never_matters(table: list[Guardrail]) -> None:
    over = facts(budget=BudgetFacts("warning", "85% used"))
    assert run(table, over) == run(GUARDRAILS, over)


def test_a_short_circuit_guard_ends_the_pass_at_its_block() -> None:
    table = (guard(1, "a", STOP, short=True), guard(2, "b"))
    assert [r.guard for r in run(table, facts()).results] == ["a"]


def test_a_block_without_short_circuit_lets_the_rest_report_and_still_blocks() -> None:
    later = Halt("guardrail", "later", "lopen resume")
    passed = run((guard(1, "a", STOP), guard(2, "b"), guard(3, "c", later)), facts())
    assert passed.corrections == ("a: a says so", "b: b says so", "c: c says so")
    assert passed.pause is STOP


def test_a_guard_that_raises_warns_with_its_name_and_error_and_the_pass_goes_on() -> None:
    passed = run((raising(ValueError("no\nway")), guard(2, "b")), facts())
    warning = passed.results[0]
    assert warning.guard == "broken"
    assert "broken itself failed: ValueError: no way" in warning.reason
    assert passed.results[1].guard == "b"
    assert passed.pause is None


def test_a_signal_is_no_guard_failure() -> None:
    with pytest.raises(Stopped):
        run((raising(Stopped(ExitCode.INTERRUPTED)),), facts())


def test_advice_never_blocks_however_bad_the_habits() -> None:
    calls = fed(*[read() for _ in range(50)], *[ran("make", 1, None)] * 3)
    passed = run(GUARDRAILS, facts(habits=lasting_habits(calls, "", ToolDiscipline())))
    assert [r.guard for r in passed.raised] == ["circular_behaviour", "tool_discipline"]
    assert passed.pause is None


@given(
    crossing=st.sampled_from(CROSSINGS),
    failures=st.integers(0, 12),
    planned=st.none() | st.integers(0, 5),
    step=st.sampled_from(Step),
)
def test_whatever_is_raised_tells_people_the_model_and_the_reaction(
    crossing: Any, failures: int, planned: int | None, step: Step
) -> None:
    budget = BudgetFacts(crossing, "some used", "lopen budget extend")
    failing = Task("t1", "login", failures=failures, reasons=("it broke",))
    passed = run(GUARDRAILS, facts(failing, step, budget=budget, original_scope=planned))
    for result in passed.raised:
        assert "itself failed" not in result.reason
        assert result.correction
        assert result.action


def test_events_are_warnings_and_blocks_not_yet_announced() -> None:
    results = [
        GuardResult("budget", "r", action="continues", announce=False),
        GuardResult("tool_discipline"),
        GuardResult("churn", "r1", action="continues"),
        GuardResult("quality_gate", "r2", pause=STOP, action="pauses"),
    ]
    assert [(e.guard, e.verdict, e.reason, e.action) for e in events(results)] == [
        ("churn", "warn", "r1", "continues"),
        ("quality_gate", "block", "r2", "pauses"),
    ]
