"""Rungs kept in the session: each climb is told once, also over a restart, and coming down is told too."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.repeated_failures import Ladder, escalated
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, Task, TaskTree
from tests.guardrails.examples import NOW


def session(failures: int = 0, *, step_failures: int = 0, given_up: str = "") -> Session:
    task = Task("t1", "Parse", failures=failures, note="it broke", given_up=given_up)
    tree = TaskTree((Component("c1", "Core", tasks=(task,)),))
    return Session("m-1", "m", NOW, step=Step.BREAK_INTO_TASKS, tree=tree, step_failures=step_failures)


def climbs(before: Session, threshold: int = 3) -> tuple[Session, list[tuple[str, str, str, int]]]:
    after, told = escalated(before, threshold, NOW)
    return after, [(t.subject, t.before, t.after, t.failures) for t in told]


def test_nothing_is_told_where_nothing_fails() -> None:
    calm = session()
    assert escalated(calm, 3, NOW) == (calm, ())


def test_each_rung_is_told_once() -> None:
    kept, told = climbs(session(2))
    assert told == [("t1", "normal", "warning", 2)]
    assert climbs(kept) == (kept, [])


def test_what_was_told_says_why_and_what_lopen_does() -> None:
    _, [told] = escalated(session(3), 3, NOW)
    assert told.reason == "failed 3 times in a row (it broke)"
    assert told.action == "asks a person before another try"


def test_a_success_comes_down_to_normal() -> None:
    kept, _ = climbs(session(3))
    down, told = climbs(replace(kept, tree=session(0).tree))
    assert told == [("t1", "intervention", "normal", 0)]
    assert down.pressure == {}


def test_a_task_that_was_given_up_presses_no_more() -> None:
    kept, _ = climbs(session(3))
    assert climbs(replace(kept, tree=session(3, given_up="not needed").tree))[1] == [
        ("t1", "intervention", "normal", 0)
    ]


def test_a_planning_step_climbs_and_comes_down_when_it_is_left() -> None:
    kept, told = climbs(session(step_failures=2))
    assert told == [("break_into_tasks", "normal", "warning", 2)]
    left = replace(kept, step=Step.ITERATE_THROUGH_TASKS, step_failures=0)
    assert climbs(left)[1] == [("break_into_tasks", "warning", "normal", 0)]


@given(st.lists(st.integers(0, 8), max_size=40), st.integers(1, 6))
def test_the_session_always_holds_the_present_rung(counts: list[int], threshold: int) -> None:
    kept = session()
    for failures in counts:
        kept, told = climbs(replace(kept, tree=session(failures).tree), threshold)
        rung = Ladder.around(threshold).pressure(failures).value
        assert kept.pressure.get("t1", "normal") == rung
        assert len(told) <= 1
