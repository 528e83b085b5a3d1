"""The order of the guards, and what is told of their verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.errors import ExitCode, Stopped
from lopen.guardrails.guard import (
    BudgetFacts,
    Category,
    ChurnFacts,
    GuardFacts,
    Guardrail,
    GuardResult,
    GuardVerdict,
    ScopeFacts,
)
from lopen.guardrails.habits import HabitLimits, circles, undisciplined
from lopen.guardrails.pipeline import GUARDRAILS, events, run
from lopen.workflow.steps import Step
from tests.guardrails.examples import facts, fed, ran, read

CROSSINGS = ["", "warning", "confirmation", "pause"]


def guard(order: int, name: str, verdict: GuardVerdict, *, short: bool = False) -> Guardrail:
    result = GuardResult(name, verdict, f"{name} says so")
    return Guardrail(order, name, Category.TOOL_DISCIPLINE, short, lambda _: result)


def raising(order: int, error: BaseException) -> Guardrail:
    def check(_: GuardFacts) -> GuardResult:
        raise error

    return Guardrail(order, "broken", Category.QUALITY_GATES, True, check)


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


def test_quiet_facts_pass_every_guard() -> None:
    passed = run(GUARDRAILS, facts())
    assert [r.verdict for r in passed.results] == [GuardVerdict.PASS] * 7
    assert not passed.blocked
    assert passed.corrections == ()
    assert passed.wait_s == 0


@given(st.permutations(GUARDRAILS))
def test_registration_order_never_matters(table: list[Guardrail]) -> None:
    over = facts(budget=BudgetFacts("warning", "85% used"))
    assert run(table, over) == run(GUARDRAILS, over)


def test_a_short_circuit_guard_ends_the_pass_at_its_block() -> None:
    table = (guard(1, "a", GuardVerdict.BLOCK, short=True), guard(2, "b", GuardVerdict.WARN))
    assert [r.guard for r in run(table, facts()).results] == ["a"]


def test_a_block_without_short_circuit_lets_the_rest_report_and_still_blocks() -> None:
    table = (
        guard(1, "a", GuardVerdict.BLOCK),
        guard(2, "b", GuardVerdict.WARN),
        guard(3, "c", GuardVerdict.BLOCK),
    )
    passed = run(table, facts())
    assert [r.guard for r in passed.results] == ["a", "b", "c"]
    assert passed.blocked
    assert passed.block is not None
    assert passed.block.guard == "a"


def test_warnings_and_blocks_both_become_corrections() -> None:
    table = (
        guard(1, "a", GuardVerdict.PASS),
        guard(2, "b", GuardVerdict.WARN),
        guard(3, "c", GuardVerdict.BLOCK),
    )
    assert run(table, facts()).corrections == ("b: b says so", "c: c says so")


def test_a_guard_that_raises_warns_with_its_name_and_error_and_the_pass_goes_on() -> None:
    passed = run((raising(1, ValueError("no\nway")), guard(2, "b", GuardVerdict.PASS)), facts())
    warning = passed.results[0]
    assert (warning.guard, warning.verdict) == ("broken", GuardVerdict.WARN)
    assert "broken" in warning.reason
    assert "ValueError: no way" in warning.reason
    assert passed.results[1].guard == "b"
    assert not passed.blocked


def test_a_signal_is_no_guard_failure() -> None:
    with pytest.raises(Stopped):
        run((raising(1, Stopped(ExitCode.INTERRUPTED)),), facts())


def test_facts_that_make_no_sense_open_the_gate_for_the_other_guards() -> None:
    nonsense = facts(task_id="t1", churn=ChurnFacts(failures=3, threshold=0))
    passed = run(GUARDRAILS, nonsense)
    assert [r.guard for r in passed.raised] == ["churn"]
    assert len(passed.results) == 7


def test_advice_never_blocks_however_bad_the_habits() -> None:
    habits = fed(*[read() for _ in range(50)], *[ran("make", 1, None)] * 3)
    bad = facts(circular=circles(habits, ""), discipline=undisciplined(habits, "", HabitLimits()))
    passed = run(GUARDRAILS, bad)
    assert [(r.guard, r.verdict) for r in passed.raised] == [
        ("circular_behaviour", GuardVerdict.WARN),
        ("tool_discipline", GuardVerdict.WARN),
    ]


@given(
    crossing=st.sampled_from(CROSSINGS),
    failures=st.integers(0, 12),
    confirmed=st.integers(0, 12),
    completed=st.none() | st.integers(-1, 5),
    original=st.none() | st.integers(-1, 5),
    step=st.sampled_from(Step),
)
def test_every_block_says_how_a_person_answers_it(
    crossing: Any, failures: int, confirmed: int, completed: int | None, original: int | None, step: Step
) -> None:
    given_facts = replace(
        facts(step=step, task_id="t1", task_name="login"),
        budget=BudgetFacts(crossing, "some used", "lopen confirm s"),
        churn=ChurnFacts(failures, ("it broke",), confirmed),
        scope=ScopeFacts(completed, original),
    )
    passed = run(GUARDRAILS, given_facts)
    assert not [r for r in passed.results if "itself failed" in r.reason]
    for result in passed.raised:
        assert result.reason
        assert result.correction
        assert result.action
        if result.verdict is GuardVerdict.BLOCK:
            assert result.command.startswith("lopen ")
            assert result.pause_kind is not None
            asks_again = result.pause_kind == "confirmation" and result.guard != "budget"
            assert (bool(result.confirm), result.level > 0) == (asks_again, asks_again)


def test_events_are_warnings_and_blocks_not_yet_announced() -> None:
    results = [
        GuardResult("budget", GuardVerdict.WARN, "r", action="continues", announce=False),
        GuardResult("churn", GuardVerdict.WARN, "r1", action="continues"),
        GuardResult("quality_gate", GuardVerdict.BLOCK, "r2", action="pauses"),
    ]
    assert [(e.guard, e.verdict, e.reason, e.action) for e in events(results)] == [
        ("churn", "warn", "r1", "continues"),
        ("quality_gate", "block", "r2", "pauses"),
    ]
