"""Decisions: what an iteration's outcome does to the session. Pure; the orchestrator saves the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

from lopen.base.events import Event, StepEntered, TaskChanged
from lopen.workflow.machine import advance
from lopen.workflow.session import ATTEMPT_FAILED, Pause, Session
from lopen.workflow.steps import Step, Trigger, number, phase_of
from lopen.workflow.task_tree import State

STEPS = frozenset(step.value for step in Step)  # as subjects of a confirmation
SMALLEST_CONTEXT = 4  # context levels: each halves the room for sections and excerpts


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a conversation ended. `recorded`: the step's result lies in the session already."""

    kind: Literal["recorded", "failed", "overflow", "paused"]
    reason: str = ""
    pause: Pause | None = None
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The session as it goes on, and what is told of it."""

    session: Session
    events: tuple[Event, ...] = ()


def entered(session: Session, trigger: Trigger) -> Decision:
    """The session after `trigger` fired."""
    step = advance(session.step, trigger)
    return Decision(
        replace(session, step=step), (StepEntered(step.value, number(step), phase_of(step), trigger.value),)
    )


def decide(session: Session, outcome: Outcome) -> Decision:
    """What to do after a conversation: go on, count a failure, shrink the context, or wait."""
    match outcome.kind:
        case "recorded":
            return Decision(_recorded(session))
        case "paused":
            assert outcome.pause is not None
            return Decision(_paused(session, outcome.pause))
        case "overflow":
            return _smaller(session)
        case "failed":
            return _failed(session, outcome.reason)
        case _:
            assert_never(outcome.kind)


def _recorded(session: Session) -> Session:
    """What was told is done with; a confirmation was good for one row of failures of a step only."""
    confirmed = {subject: level for subject, level in session.confirmed.items() if subject not in STEPS}
    return replace(session, corrections=(), notes=(), step_failures=0, context_level=0, confirmed=confirmed)


def _paused(session: Session, pause: Pause) -> Session:
    """Waiting. What a circuit stopped is told to the model once a person let it go on."""
    if pause.kind == "circuit":
        session = replace(session, corrections=(*session.corrections, f"circuit_breaker: {pause.message}"))
    return session.paused(pause)


def _smaller(session: Session) -> Decision:
    if session.context_level >= SMALLEST_CONTEXT:
        return _failed(session, "the prompt is too long for the model even at its smallest")
    return Decision(replace(session, context_level=session.context_level + 1))


def _failed(session: Session, reason: str) -> Decision:
    session = replace(session, corrections=(*session.corrections, ATTEMPT_FAILED + reason))
    task = session.task if session.step is Step.ITERATE_THROUGH_TASKS else None
    if task is None:
        return Decision(replace(session, step_failures=session.step_failures + 1))
    owner = session.tree.owner(task.id)
    failed = replace(task.to(State.FAILED), failures=task.failures + 1, note=reason)
    decision = entered(replace(session, tree=session.tree.with_task(failed)), Trigger.TASK_ITERATION_COMPLETE)
    told = TaskChanged(task.id, task.name, owner.name if owner else "", State.FAILED.value, reason)
    return Decision(decision.session, (told, *decision.events))
