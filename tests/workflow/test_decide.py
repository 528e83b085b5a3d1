"""Decisions: what each outcome of a conversation does to the session."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lopen.core.events import StepEntered, TaskChanged
from lopen.workflow import changes
from lopen.workflow.next_step import (
    MAX_CONTEXT_LEVEL,
    Decision,
    IllegalTransition,
    Outcome,
    Trigger,
    decide,
    enter_step,
)
from lopen.workflow.pauses import BOUNDARIES, circuit_open, not_accepted
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import State
from tests.sessions import changed
from tests.workflow.examples import APPROVAL, building, session, sessions

QUICK = settings(deadline=None, max_examples=30)


def test_entering_a_step_is_told_with_the_trigger() -> None:
    decision = enter_step(session(approval=APPROVAL), Trigger.SPEC_APPROVED)
    assert decision.session.step is Step.DETERMINE_DEPENDENCIES
    assert decision.events == (StepEntered("determine_dependencies", 2, "planning", "spec_approved"),)
    with pytest.raises(IllegalTransition):
        enter_step(session(), Trigger.MODULE_VERIFIED)
    with pytest.raises(IllegalTransition):  # nobody approved
        enter_step(session(), Trigger.SPEC_APPROVED)


def test_a_recorded_result_clears_what_was_told_and_counted() -> None:
    before = session(corrections=("a",), notes=("b",), step_failures=2, context_level=3)
    assert decide(before, Outcome("recorded")) == Decision(session())


@pytest.mark.parametrize(
    ("subject", "counts"),
    [
        ("calc-t1", (0, 1, 2, 3)),
        ("break_into_tasks", (3, 0, 2, 3)),
        (BOUNDARIES, (3, 1, 0, 0)),
    ],
)
def test_a_confirmation_lets_one_count_begin_anew(subject: str, counts: tuple[int, ...]) -> None:
    before = building(step_failures=1, boundary_failures=2, module_failures=3)
    failing = before.tree.task("calc-t1")
    assert failing is not None
    before = changes.with_task(before, replace(failing, failures=3))
    after = changes.confirm_pause(changes.ask_person(before, not_accepted(before.id, subject, "it", 3, "no")))
    limits, task = after.limits, after.tree.task("calc-t1")
    assert task is not None
    assert (task.failures, limits.step_failures, limits.boundary_failures, limits.module_failures) == counts


def test_an_attempt_that_was_rejected_does_not_count_again_when_its_conversation_ends() -> None:
    before = changes.count_rejection(building(), "sums are off", "digest")
    task = decide(before, Outcome("failed", "gave up", counted=True)).session.tree.task("calc-t1")
    assert task is not None
    assert (task.state, task.failures, task.reasons) == (State.FAILED, 1, ("sums are off", "gave up"))


def test_what_a_circuit_stopped_is_told_in_the_next_prompt() -> None:
    pause = circuit_open(session().id, "read_file was called 5 times", "lopen circuit ack x")
    after = decide(session(), Outcome("paused", pause=pause)).session
    assert after.dialogue.corrections == ("circuit_breaker: read_file was called 5 times",)


def test_an_overflow_makes_the_next_prompt_smaller_and_is_no_failure() -> None:
    before = building()
    for level in range(1, MAX_CONTEXT_LEVEL + 1):
        decision = decide(before, Outcome("overflow", "the context window is full"))
        assert decision == Decision(changed(before, context_level=level))
        before = decision.session


def test_an_overflow_of_the_smallest_prompt_is_a_failure() -> None:
    before = building(context_level=MAX_CONTEXT_LEVEL)
    task = decide(before, Outcome("overflow")).session.tree.task("calc-t1")
    assert task is not None
    assert (task.state, task.failures) == (State.FAILED, 1)
    assert "smallest" in task.reasons[0]


def test_a_failed_iteration_in_step_6_fails_its_task_and_is_told() -> None:
    before = building()
    decision = decide(before, Outcome("failed", "the model refused to answer"))
    after = decision.session
    task = after.tree.task("calc-t1")
    assert task is not None
    assert (task.state, task.failures, task.reasons) == (State.FAILED, 1, ("the model refused to answer",))
    assert after.step is Step.ITERATE_THROUGH_TASKS
    assert after.dialogue.corrections == ()  # the task's own reasons tell it
    assert decision.events == (
        TaskChanged("calc-t1", "First", "Core", "failed", "the model refused to answer"),
        StepEntered("iterate_through_tasks", 6, "building", "task_iteration_complete"),
    )


def test_a_failed_iteration_elsewhere_is_counted_on_the_step() -> None:
    step = Step.IDENTIFY_COMPONENTS
    before = changed(building(), step=step, step_failures=1)
    decision = decide(before, Outcome("failed", "no"))
    assert decision.session.step is step
    assert decision.session.limits.step_failures == 2
    assert decision.session.tree is before.tree
    assert decision.events == ()


@given(sessions(), st.sampled_from(["recorded", "failed", "overflow"]))
@QUICK
def test_no_outcome_opens_the_gate_completes_anything_or_ends_the_session(before: Session, kind: str) -> None:
    after = decide(before, Outcome(kind, "why")).session  # type: ignore[arg-type]  # one of them
    assert after.approval is before.approval
    assert after.step is before.step
    assert after.status == before.status
    done = {t.id for t in before.tree.tasks if t.state is State.COMPLETE}
    assert {t.id for t in after.tree.tasks if t.state is State.COMPLETE} == done
    assert [c.verified for c in after.tree.components] == [c.verified for c in before.tree.components]
