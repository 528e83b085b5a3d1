"""Why a run waits: every pause names the command that lets it go on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lopen.workflow import changes
from lopen.workflow.next_step import review, stuck
from lopen.workflow.pauses import (
    BOUNDARIES,
    AddedTasks,
    FailuresInRow,
    circuit_open,
    endpoint_unreachable,
)
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.workflow.examples import building, session

ID = "calc-20260301-1"


def test_a_pause_says_why_and_names_the_command_that_goes_on() -> None:
    asked = endpoint_unreachable(ID, "429", datetime(2026, 3, 1, 9, 30, tzinfo=UTC))
    assert "(429); continue after 2026-03-01 09:30 UTC" in asked.message
    assert asked.command == f"lopen resume {ID}"
    assert circuit_open(ID, "open", "lopen circuit ack x").command == "lopen circuit ack x"
    assert circuit_open(ID, "open").command == f"lopen resume {ID}"


def test_what_was_given_up_is_named_with_its_open_criteria() -> None:
    left = [Component("a", "A", criteria=("AC-1",)), Component("b", "B", criteria=("AC-2", "AC-3"))]
    pause = stuck(session(), left)
    assert "A, B cannot continue" in pause.message
    assert "open criteria: AC-1, AC-2, AC-3;" in pause.message
    assert pause.command == "lopen run calc --new"
    tasks = (
        Task("t1", "One", state=State.COMPLETE, criteria=("AC-2",)),
        Task("t2", "Two", state=State.FAILED, criteria=("AC-3",)),
    )
    assert "open criteria: AC-3;" in stuck(session(), [replace(left[1], tasks=tasks)]).message


@pytest.mark.parametrize(
    ("failures", "confirmed", "asked"),
    [(2, 0, False), (3, 0, True), (5, 3, False), (6, 3, True)],
)
def test_three_failed_boundaries_in_a_row_ask_and_a_confirmation_is_good_for_three_more(
    failures: int, confirmed: int, asked: bool
) -> None:
    wanted = building(
        boundary_failures=failures, confirmed=(FailuresInRow(BOUNDARIES, confirmed),), planned_tasks=2
    )
    pause = review(wanted)
    assert (pause is not None) == asked
    if pause is not None:
        assert pause.reason == FailuresInRow(BOUNDARIES, failures)
        assert review(changes.confirm_pause(changes.ask_person(wanted, pause))) is None


def with_added(added: int, planned: int, confirmed: int = 0) -> Session:
    work = tuple(Task(f"t{n}", "T", added=n < added) for n in range(added + planned))
    return session(
        tree=TaskTree((Component("c", "C", tasks=work),)),
        planned_tasks=planned,
        confirmed=(AddedTasks(confirmed),),
    )


@pytest.mark.parametrize(
    ("added", "planned", "confirmed", "asked"),
    [
        (1, 0, 0, False),
        (2, 0, 0, True),
        (4, 3, 0, True),
        (4, 3, 4, False),
    ],
)
def test_more_added_than_planned_tasks_ask(added: int, planned: int, confirmed: int, asked: bool) -> None:
    pause = review(with_added(added, planned, confirmed))
    assert (pause is not None) == asked
    if pause is not None:
        assert pause.message == f"{added} tasks were added to {planned} planned ones"
        assert review(with_added(added, planned, added)) is None
