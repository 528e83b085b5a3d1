"""Guards over changes that do not help, and what is done about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.guard import ChurnFacts, GuardResult, GuardVerdict
from lopen.guardrails.repeated_failures import (
    Pressure,
    check,
    confirmation_at,
    escalated,
    pressure_at,
)
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.guardrails.examples import NOW, facts
from tests.sessions import changed


def judged(failures: int, confirmed_at: int = 0, threshold: int = 3) -> GuardResult:
    churn = ChurnFacts(failures, ("red test", "red\ntest again"), confirmed_at, threshold)
    return check(facts(task_id="t1", task_name="login", churn=churn))


@pytest.mark.parametrize(
    ("failures", "confirmed_at", "verdict", "level"),
    [
        (0, 0, GuardVerdict.PASS, 0),
        (1, 0, GuardVerdict.PASS, 0),
        (2, 0, GuardVerdict.WARN, 0),
        (3, 0, GuardVerdict.BLOCK, 3),
        (3, 3, GuardVerdict.WARN, 0),
        (5, 3, GuardVerdict.BLOCK, 5),
        (5, 5, GuardVerdict.WARN, 0),
        (7, 5, GuardVerdict.BLOCK, 7),
        (100, 7, GuardVerdict.BLOCK, 99),
    ],
)
def test_gates(failures: int, confirmed_at: int, verdict: GuardVerdict, level: int) -> None:
    result = judged(failures, confirmed_at)
    assert (result.verdict, result.level) == (verdict, level)


def test_the_block_names_task_reasons_and_both_ways_on() -> None:
    result = judged(3)
    assert result.reason == "task t1 (login) failed 3 times in a row (red test; red test again)"
    assert (result.pause_kind, result.confirm) == ("confirmation", "t1")
    assert result.command == "lopen confirm auth-20260301-1"
    assert "lopen skip t1" in result.action


def test_the_words_to_the_model_get_sharper() -> None:
    assert "different approach" in judged(2).correction
    assert "must change your strategy" in judged(3).correction
    assert "Do not repeat" in judged(5).correction
    assert "halts" in judged(5, 3).action


def test_without_a_task_there_is_no_churn() -> None:
    assert check(facts(churn=ChurnFacts(failures=9))).verdict is GuardVerdict.PASS


@pytest.mark.parametrize(
    ("threshold", "rungs"), [(1, (1, 1, 3)), (2, (1, 2, 4)), (3, (2, 3, 5)), (10, (9, 10, 12))]
)
def test_the_threshold_moves_the_whole_ladder(threshold: int, rungs: tuple[int, int, int]) -> None:
    warning, intervention, halt = rungs
    assert pressure_at(warning, threshold) is (Pressure.WARNING if threshold > 1 else Pressure.INTERVENTION)
    assert pressure_at(intervention, threshold) is Pressure.INTERVENTION
    assert (pressure_at(halt - 1, threshold), pressure_at(halt, threshold)) == (
        Pressure.INTERVENTION,
        Pressure.HALTED,
    )
    assert confirmation_at(threshold, threshold) == threshold
    assert judged(threshold, threshold=threshold).level == threshold


def session(failures: int = 0, *, step_failures: int = 0, given_up: str = "") -> Session:
    task = Task("t1", "Parse", failures=failures, reasons=("it broke",), given_up=given_up)
    tree = TaskTree((Component("c1", "Core", tasks=(task,)),))
    begun = Session("m-1", "m", NOW, step=Step.BREAK_INTO_TASKS)
    return changed(begun, tree=tree, step_failures=step_failures)


def climbs(before: Session, threshold: int = 3) -> tuple[Session, list[tuple[str, str, str, int]]]:
    after, told = escalated(before, threshold)
    return after, [(t.subject, t.before, t.after, t.failures) for t in told]


def test_each_rung_is_told_once() -> None:
    kept, told = climbs(session(2))
    assert told == [("t1", "normal", "warning", 2)]
    assert climbs(kept) == (kept, [])


def test_a_success_comes_down_to_normal() -> None:
    kept, _ = climbs(session(3))
    down, told = climbs(changed(kept, tree=session(0).tree))
    assert told == [("t1", "intervention", "normal", 0)]
    assert down.limits.pressure == {}


def test_a_task_that_was_given_up_presses_no_more() -> None:
    kept, _ = climbs(session(3))
    assert climbs(changed(kept, tree=session(3, given_up="not needed").tree))[1] == [
        ("t1", "intervention", "normal", 0)
    ]


def test_a_planning_step_climbs_and_comes_down_when_it_is_left() -> None:
    kept, told = climbs(session(step_failures=2))
    assert told == [("break_into_tasks", "normal", "warning", 2)]
    left = changed(kept, step=Step.ITERATE_THROUGH_TASKS, step_failures=0)
    assert climbs(left)[1] == [("break_into_tasks", "warning", "normal", 0)]


@given(st.lists(st.integers(0, 8), max_size=40), st.integers(1, 6))
def test_the_session_always_holds_the_present_rung(counts: list[int], threshold: int) -> None:
    kept = session()
    for failures in counts:
        kept, told = climbs(changed(kept, tree=session(failures).tree), threshold)
        rung = pressure_at(failures, threshold).value
        assert kept.limits.pressure.get("t1", "normal") == rung
        assert len(told) <= 1
