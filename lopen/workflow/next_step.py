"""Which step comes next: the one that the facts give, and the one that an iteration's outcome leads to. Pure.

The step is computed from facts, never from the saved step (docs/reference/workflow.md). The caller saves the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from lopen.core.events import Event, StepEntered, TaskChanged
from lopen.workflow import changes
from lopen.workflow.pauses import (
    AddedTasks,
    Blocked,
    CircuitOpen,
    Confirmation,
    FailedBoundaries,
    FailuresInRow,
    Pause,
)
from lopen.workflow.session import ATTEMPT_FAILED, Session
from lopen.workflow.steps import ORDER, Step, Trigger, advance, number, phase_of, reachable
from lopen.workflow.task_tree import Component, State


@dataclass(frozen=True, slots=True)
class Facts:
    """The observed facts about a session. `approved`: a person approved the specification for this session.

    `components`: step 3 is recorded with a scope to compare with; a plan rebuilt from `plan.md` does not count.
    """

    approved: bool
    dependencies: bool
    components: bool
    replan: Step | None
    selected: Component | None


def facts_of(session: Session, *, approved: bool) -> Facts:
    """Return the facts in the session's own record."""
    return Facts(
        approved=approved,
        dependencies=session.plan.dependencies is not None,
        components=bool(session.tree.components) and scope_of(session).known,
        replan=session.plan.replan,
        selected=session.tree.component(session.plan.selected) if session.plan.selected else None,
    )


def displayed_step(session: Session) -> Step:
    """Return the step to display for a session. After a revert an unfinished session is never in the last step."""
    if session.finished or session.step is not Step.COMPLETE:
        return session.step
    return assess(facts_of(session, approved=session.approval is not None))


def assess(facts: Facts) -> Step:
    """Return the earliest step whose result is missing."""
    step = _from_plan(facts)
    if facts.replan is not None and ORDER.index(facts.replan) < ORDER.index(step):
        step = facts.replan
    # Only steps that the table leads to: without an approval no step after the gate.
    allowed = reachable(Step.DRAFT_SPECIFICATION, past_gate=facts.approved)
    return step if step in allowed else Step.DRAFT_SPECIFICATION


def _from_plan(facts: Facts) -> Step:
    if not facts.approved:
        return Step.DRAFT_SPECIFICATION
    if not facts.dependencies:
        return Step.DETERMINE_DEPENDENCIES
    if not facts.components:
        return Step.IDENTIFY_COMPONENTS
    component = facts.selected
    if component is None:
        return Step.SELECT_NEXT_COMPONENT
    if component.state is State.COMPLETE:
        return Step.REPEAT
    if not component.open_tasks and not component.broken_down:
        return Step.BREAK_INTO_TASKS
    return Step.ITERATE_THROUGH_TASKS


@dataclass(frozen=True, slots=True)
class Scope:
    """The completed and the original scope: numbers of acceptance criteria and components."""

    completed: int
    original: int | None

    @property
    def known(self) -> bool:
        """True if there is an original scope; zero counts as unknown."""
        return bool(self.original)

    @property
    def reached(self) -> bool:
        """True if the whole original scope is complete."""
        return self.original is not None and self.known and self.completed >= self.original


def met_criteria(session: Session) -> frozenset[str]:
    """Return the recorded criteria that are met: every component that covers one is complete."""
    components = session.tree.components
    covering = {i: [c for c in components if i in c.criteria] for i in session.plan.criteria}
    return frozenset(i for i, of in covering.items() if of and all(c.state is State.COMPLETE for c in of))


def standing_work(session: Session) -> frozenset[str]:
    """Return the ids of the complete tasks, the verified components, and the module where it is finished."""
    done = {t.id for t in session.tree.tasks if t.state is State.COMPLETE}
    done |= {c.id for c in session.tree.components if c.verified}
    return frozenset(done | ({session.module} if session.finished else set()))


def scope_of(session: Session) -> Scope:
    """Return the verified part of the scope: its criteria that are met and its complete components."""
    done = sum(c.state is State.COMPLETE for c in session.tree.components)
    return Scope(done + len(met_criteria(session)), session.plan.original_scope)


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
    session = replace(session, dialogue=replace(session.dialogue, refused=(outcome.subject, outcome.refused)))
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
    confirmed = tuple(
        r for r in session.limits.confirmed if not (isinstance(r, FailuresInRow) and r.subject in STEPS)
    )
    return replace(
        session,
        limits=replace(session.limits, step_failures=0, context_level=0, confirmed=confirmed),
        dialogue=replace(session.dialogue, corrections=(), notes=told),
    )


def _pause(session: Session, pause: Pause) -> Session:
    """Pause the session; after a circuit's pause the next prompt tells the model the reason."""
    if isinstance(pause, CircuitOpen):
        return changes.pause_for(session, pause, [f"circuit_breaker: {pause.message}"])
    return changes.pause_for(session, pause)


def _shrink_context(session: Session) -> Decision:
    if session.limits.context_level >= MAX_CONTEXT_LEVEL:
        return _count_failure(session, "the prompt is too long for the model even at its smallest size")
    limits = replace(session.limits, context_level=session.limits.context_level + 1)
    return Decision(replace(session, limits=limits))


def _count_failure(session: Session, reason: str) -> Decision:
    task = session.task if session.step is Step.ITERATE_THROUGH_TASKS else None
    if task is None:
        corrections = (*session.dialogue.corrections, ATTEMPT_FAILED + reason)
        limits = replace(session.limits, step_failures=session.limits.step_failures + 1)
        return Decision(
            replace(session, limits=limits, dialogue=replace(session.dialogue, corrections=corrections))
        )
    owner = session.tree.owner(task.id)
    failed = task.fail(reason)
    decision = enter_step(changes.with_task(session, failed), Trigger.TASK_ITERATION_COMPLETE)
    changed = TaskChanged(task.id, task.name, owner.name if owner else "", failed.state.value, reason)
    return Decision(decision.session, (changed, *decision.events))


def task_skipped(session: Session, task_id: str) -> TaskChanged:
    """Return the event that tells of a task that a person skipped."""
    task, owner = session.tree.task(task_id), session.tree.owner(task_id)
    assert task is not None
    reason = f"skipped: {task.given_up}"
    return TaskChanged(task.id, task.name, owner.name if owner else "", task.state.value, reason)


FAILURES_TO_ASK = 3


def review(session: Session) -> Confirmation | None:
    """Return what a person must confirm before lopen spends more; None if there is nothing."""
    failed, added = session.limits.failed_boundaries, sum(t.added for t in session.tree.tasks)
    planned = session.plan.planned_tasks
    if failed >= session.limits.confirmed_boundaries + FAILURES_TO_ASK:
        message = f"{failed} boundary verifications failed in a row"
        return Confirmation(session.id, FailedBoundaries(failed), message)
    if added > max(planned, 1) + session.limits.confirmed_tasks:
        message = f"{added} tasks were added to {planned} planned ones"
        return Confirmation(session.id, AddedTasks(added), message)
    return None


def idle(session: Session) -> Blocked:
    """Return the pause for a run that came back to the same state without any change."""
    return Blocked(
        f"the last iterations changed nothing, and the next would not either (step {session.step.value}); look at "
        f"`lopen log {session.id}`, or plan the module again",
        f"lopen plan {session.module} --new",
    )


def stuck(session: Session, remaining: Sequence[Component]) -> Blocked:
    """Return the pause for remaining components that are given up or depend on such a component."""
    names = ", ".join(c.name for c in remaining)
    criteria = ", ".join(i for c in remaining for i in c.criteria) or "none"
    return Blocked(
        f"not complete: {names} cannot continue because tasks were given up; open criteria: {criteria}; "
        "a new session plans the remaining work",
        f"lopen run {session.module} --new",
    )


def scope_lost(session: Session, scope: Scope) -> Blocked:
    """Return the pause for a verified module with less than the planned scope, or without a known scope."""
    known = "unknown" if scope.original is None else str(scope.original)
    return Blocked(
        f"scope_continuity: {scope.completed} criteria and components are complete, the original scope is {known}; "
        "plan the module again so that the scope is recorded",
        f"lopen plan {session.module} --new",
    )
