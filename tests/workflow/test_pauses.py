"""Why a run waits: every pause names the command that lets it go on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lopen.workflow.next_step import review, stuck
from lopen.workflow.pauses import (
    AddedTasks,
    circuit_open,
    endpoint_unreachable,
)
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.workflow.examples import session

ID = "calc-20260301-1"


def test_a_pause_says_why_and_names_the_command_that_goes_on() -> None:
    asked = endpoint_unreachable(ID, "429", datetime(2026, 3, 1, 9, 30, tzinfo=UTC))
    assert "(429); continue after 2026-03-01 09:30 UTC" in asked.message
    assert asked.command == f"lopen resume {ID}"
    assert circuit_open(ID, "open", "lopen circuit ack x").command == "lopen circuit ack x"
    assert circuit_open(ID, "open").command == f"lopen resume {ID}"


def test_what_was_given_up_is_named_with_its_open_criteria() -> None:
    skipped = Task("t2", "Two", state=State.FAILED, criteria=("AC-3",), given_up="no")
    done = Task("t1", "One", state=State.COMPLETE, criteria=("AC-2",))
    a = Component("a", "A", criteria=("AC-2", "AC-3"), tasks=(done, skipped))
    after_it = Component("b", "B", depends_on=("a",), criteria=("AC-4",))
    pause = stuck(session(tree=TaskTree((a, after_it))))
    assert pause is not None
    assert "A, B cannot continue" in pause.message
    assert "open criteria: AC-3, AC-4;" in pause.message
    assert pause.command == "lopen run calc --new"
    assert stuck(session(tree=TaskTree((a, replace(after_it, depends_on=()))))) is None


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
