"""Apply an iteration's outcome to the session. Pure; the caller saves the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

from lopen.base.events import Event, StepEntered, TaskChanged
from lopen.workflow.session import ATTEMPT_FAILED, Pause, Session
from lopen.workflow.steps import Step, Trigger, advance, number, phase_of

STEPS = frozenset(step.value for step in Step)  # the steps as subjects of a confirmation
MAX_CONTEXT_LEVEL = 4  # each level halves the size of sections and excerpts


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a conversation. `recorded`: the session already contains the step's result.

    `refused` is what lopen or the judge refused of the work on `subject` and was not mended in the conversation.
    """

    kind: Literal["recorded", "failed", "overflow", "paused"]
    reason: str = ""
    pause: Pause | None = None
    turns: int = 0
    subject: str = ""  # a task's id, or a planning step
    refused: str = ""
    told: tuple[str, ...] = ()  # failed calls of the turn that recorded the result, for the next prompt


@dataclass(frozen=True, slots=True)
class Decision:
    """The changed session and the events about the change."""

    session: Session
    events: tuple[Event, ...] = ()


def enter_step(session: Session, trigger: Trigger) -> Decision:
    """Apply `trigger` to the session."""
    step = advance(session.step, trigger)
    return Decision(
        replace(session, step=step), (StepEntered(step.value, number(step), phase_of(step), trigger.value),)
    )


def decide(session: Session, outcome: Outcome) -> Decision:
    """Decide what follows a conversation: continue, count a failure, shrink the context, or pause."""
    session = replace(session, refused=(outcome.subject, outcome.refused))
    match outcome.kind:
        case "recorded":
            return Decision(_after_result(session, outcome.told))
        case "paused":
            assert outcome.pause is not None
            return Decision(_pause(session, outcome.pause))
        case "overflow":
            return _shrink_context(session)
        case "failed":
            return _count_failure(session, outcome.reason)
        case _:
            assert_never(outcome.kind)


def _after_result(session: Session, told: tuple[str, ...]) -> Session:
    """Replace the messages for the model; clear the confirmations of steps, which hold for one series of failures."""
    confirmed = {subject: level for subject, level in session.confirmed.items() if subject not in STEPS}
    return replace(session, corrections=(), notes=told, step_failures=0, context_level=0, confirmed=confirmed)


def _pause(session: Session, pause: Pause) -> Session:
    """Pause the session; after a circuit's pause the next prompt tells the model the reason."""
    if pause.kind == "circuit":
        session = replace(session, corrections=(*session.corrections, f"circuit_breaker: {pause.message}"))
    return session.paused(pause)


def _shrink_context(session: Session) -> Decision:
    if session.context_level >= MAX_CONTEXT_LEVEL:
        return _count_failure(session, "the prompt is too long for the model even at its smallest size")
    return Decision(replace(session, context_level=session.context_level + 1))


def _count_failure(session: Session, reason: str) -> Decision:
    task = session.task if session.step is Step.ITERATE_THROUGH_TASKS else None
    if task is None:
        corrections = (*session.corrections, ATTEMPT_FAILED + reason)
        return Decision(replace(session, corrections=corrections, step_failures=session.step_failures + 1))
    owner = session.tree.owner(task.id)
    failed = task.fail(reason)
    decision = enter_step(
        replace(session, tree=session.tree.with_task(failed)), Trigger.TASK_ITERATION_COMPLETE
    )
    changed = TaskChanged(task.id, task.name, owner.name if owner else "", failed.state.value, reason)
    return Decision(decision.session, (changed, *decision.events))


def task_skipped(session: Session, task_id: str) -> TaskChanged:
    """Return the event that tells of a task that a person skipped."""
    task, owner = session.tree.task(task_id), session.tree.owner(task_id)
    assert task is not None
    reason = f"skipped: {task.given_up}"
    return TaskChanged(task.id, task.name, owner.name if owner else "", task.state.value, reason)
