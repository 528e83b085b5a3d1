"""The next step: the table of transitions as data, the machine over it, and the effect of an iteration's outcome.

The step is computed from facts, never from the saved step (docs/reference/workflow.md). The caller saves the result.
Pure. The only importer of `transitions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, assert_never

from lopen.core.errors import LopenError
from lopen.core.events import Event, StepEntered, TaskChanged
from lopen.workflow import changes
from lopen.workflow.pauses import (
    ACKNOWLEDGE,
    AddedTasks,
    Confirmation,
    Halt,
    Pause,
)
from lopen.workflow.session import ATTEMPT_FAILED, FAILS_NOW, Session
from lopen.workflow.steps import ORDER, Step, number, phase_of
from lopen.workflow.task_tree import State, selectable


class Trigger(StrEnum):
    """An event that moves a session to another step."""

    SPEC_APPROVED = "spec_approved"
    DEPENDENCIES_DETERMINED = "dependencies_determined"
    COMPONENTS_IDENTIFIED = "components_identified"
    COMPONENT_SELECTED = "component_selected"
    MODULE_VERIFIED = "module_verified"
    TASKS_BROKEN_DOWN = "tasks_broken_down"
    TASK_ITERATION_COMPLETE = "task_iteration_complete"
    COMPONENT_COMPLETE = "component_complete"
    COMPONENTS_REMAIN = "components_remain"


@dataclass(frozen=True, slots=True)
class Transition:
    """A row of the table: `trigger` leads from `source` to `target`.

    `shown` tells whether a session's record has the facts for the row; without it an event of the loop takes the row.
    """

    source: Step
    trigger: Trigger
    target: Step
    shown: Callable[[Session], bool] | None = None


def _approved(session: Session) -> bool:
    return session.approval is not None


def _dependencies_recorded(session: Session) -> bool:
    return session.plan.dependencies is not None and session.plan.replan is not Step.DETERMINE_DEPENDENCIES


def _components_recorded(session: Session) -> bool:
    planned = bool(session.tree.components) and scope_of(session).known
    return planned and session.plan.replan is not Step.IDENTIFY_COMPONENTS


def _component_selected(session: Session) -> bool:
    return session.plan.component is not None


def _tasks_recorded(session: Session) -> bool:
    component = session.plan.component
    return component is not None and bool(
        component.open_tasks or component.broken_down or component.state is State.COMPLETE
    )


def _component_complete(session: Session) -> bool:
    return session.plan.component is not None and session.plan.component.state is State.COMPLETE


TRANSITIONS: tuple[Transition, ...] = (
    Transition(Step.DRAFT_SPECIFICATION, Trigger.SPEC_APPROVED, Step.DETERMINE_DEPENDENCIES, _approved),
    Transition(
        Step.DETERMINE_DEPENDENCIES,
        Trigger.DEPENDENCIES_DETERMINED,
        Step.IDENTIFY_COMPONENTS,
        _dependencies_recorded,
    ),
    Transition(
        Step.IDENTIFY_COMPONENTS,
        Trigger.COMPONENTS_IDENTIFIED,
        Step.SELECT_NEXT_COMPONENT,
        _components_recorded,
    ),
    Transition(
        Step.SELECT_NEXT_COMPONENT, Trigger.COMPONENT_SELECTED, Step.BREAK_INTO_TASKS, _component_selected
    ),
    Transition(Step.SELECT_NEXT_COMPONENT, Trigger.MODULE_VERIFIED, Step.COMPLETE),
    Transition(Step.BREAK_INTO_TASKS, Trigger.TASKS_BROKEN_DOWN, Step.ITERATE_THROUGH_TASKS, _tasks_recorded),
    Transition(Step.ITERATE_THROUGH_TASKS, Trigger.TASK_ITERATION_COMPLETE, Step.ITERATE_THROUGH_TASKS),
    Transition(Step.ITERATE_THROUGH_TASKS, Trigger.COMPONENT_COMPLETE, Step.REPEAT, _component_complete),
    Transition(Step.REPEAT, Trigger.COMPONENTS_REMAIN, Step.SELECT_NEXT_COMPONENT),
)

# The rows whose results the record shows, in the order of the steps: assessment takes one after another
RESULTS = tuple(t for t in TRANSITIONS if t.shown)


class IllegalTransition(LopenError):
    """A trigger that the table does not list for the step, or whose facts are not there: a bug in lopen."""


class StepMachine:
    """The step of one session, which a `transitions` machine over the table holds and moves.

    A row is taken only if `shown` allows it: without an approval there is no step after the gate.
    """

    step: Step
    trigger: Callable[
        [str, Session], bool
    ]  # the machine's own; False where the facts of the row are not there

    def __init__(self, step: Step) -> None:
        from transitions import Machine  # imported here because most commands and the hooks never need it

        Machine(
            model=self,
            model_attribute="step",
            states=Step,
            initial=step,
            transitions=[
                {"trigger": t.trigger, "source": t.source, "dest": t.target, "conditions": t.shown}
                for t in TRANSITIONS
            ],
            auto_transitions=False,
        )


def assess(session: Session, first: Step = Step.DRAFT_SPECIFICATION) -> Step:
    """Return the earliest step from `first` on whose result is missing: the last one to which the facts lead."""
    machine = StepMachine(first)
    for result in RESULTS:
        if result.source is machine.step and not machine.trigger(result.trigger, session):
            break
    return machine.step


def due_step(session: Session) -> Step:
    """Return the step whose result may be recorded now: that of the session, or one of the plan that step 1 makes."""
    plans = session.step is Step.DRAFT_SPECIFICATION and session.plan.made_for
    return assess(session, Step.DETERMINE_DEPENDENCIES) if plans else session.step


def displayed_step(session: Session) -> Step:
    """Return the step to display for a session. After a revert an unfinished session is never in the last step."""
    if session.finished or session.step is not Step.COMPLETE:
        return session.step
    return assess(session)


def mermaid() -> str:
    """Return the table as a Mermaid state diagram with the phases as composite states."""
    lines = ["stateDiagram-v2", f"    [*] --> {Step.DRAFT_SPECIFICATION.value}"]
    for phase in ("requirement_gathering", "planning", "building"):
        members = [s for s in ORDER if s is not Step.COMPLETE and phase_of(s) == phase]
        lines.append(f"    state {phase} {{")
        lines.extend(f"        {s.value}" for s in members)
        lines.append("    }")
    lines.extend(f"    {t.source.value} --> {t.target.value}: {t.trigger.value}" for t in TRANSITIONS)
    lines.append(f"    {Step.COMPLETE.value} --> [*]")
    return "\n".join(lines) + "\n"


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


MAX_CONTEXT_LEVEL = 4  # each level halves the size of sections and excerpts


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a conversation. `recorded`: the session already contains the step's result.

    `refused` is the work on `subject` that lopen or the judge refused and the model did not mend. `counted`: a rejection
    of the conversation's last work counts already as the failed attempt.
    """

    kind: Literal["recorded", "failed", "overflow", "paused"]
    reason: str = ""
    pause: Pause | None = None
    turns: int = 0
    subject: str = ""  # a task's id, or a planning step
    refused: str = ""
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The changed session and the events about the change."""

    session: Session
    events: tuple[Event, ...] = ()


def enter_step(session: Session, trigger: Trigger) -> Decision:
    """Fire `trigger` on the session's step.

    Raises:
        IllegalTransition: the table has no such row, or the session's record lacks the facts for it.
    """
    from transitions import MachineError

    machine = StepMachine(session.step)
    try:
        fired = machine.trigger(trigger, session)
    except MachineError:
        fired = False
    if not fired:
        raise IllegalTransition(f"{trigger.value} cannot fire in step {session.step.value}")
    step = machine.step
    told = StepEntered(step.value, number(step), phase_of(step), trigger.value)
    return Decision(changes.stand_in(session, step), (told,))


def decide(session: Session, outcome: Outcome) -> Decision:
    """Decide how the session goes on after a conversation: continue, count a failure, shrink the context, or pause."""
    session = replace(session, dialogue=replace(session.dialogue, refused=(outcome.subject, outcome.refused)))
    match outcome.kind:
        case "recorded":
            return Decision(_after_result(session))
        case "paused":
            assert outcome.pause is not None
            return Decision(_pause(session, outcome.pause))
        case "overflow":
            return _shrink_context(session)
        case "failed":
            return _count_failure(session, outcome.reason, counted=outcome.counted)
        case _:
            assert_never(outcome.kind)


def _after_result(session: Session) -> Session:
    """End the row of failures, and the messages for the model; the first task is told too which command fails."""
    session = changes.end_step_failures(session)
    begins = session.step is Step.ITERATE_THROUGH_TASKS
    notes = tuple(note for note in session.dialogue.notes if begins and FAILS_NOW in note)
    return replace(
        session,
        limits=replace(session.limits, context_level=0),
        dialogue=replace(session.dialogue, notes=notes),
    )


def _pause(session: Session, pause: Pause) -> Session:
    """Pause the session; after a circuit's pause the next prompt tells the model the reason."""
    seen = pause.message.removesuffix(ACKNOWLEDGE)
    corrections = [f"circuit_breaker: {seen}"] if pause.kind == "circuit" else []
    return changes.pause_for(session, pause, corrections)


def _shrink_context(session: Session) -> Decision:
    if session.limits.context_level >= MAX_CONTEXT_LEVEL:
        return _count_failure(session, "the prompt is too long for the model even at its smallest size")
    limits = replace(session.limits, context_level=session.limits.context_level + 1)
    return Decision(replace(session, limits=limits))


def _count_failure(session: Session, reason: str, *, counted: bool = False) -> Decision:
    task = session.task if session.step is Step.ITERATE_THROUGH_TASKS else None
    if task is None:
        corrections = (*session.dialogue.corrections, ATTEMPT_FAILED + reason)
        limits = replace(session.limits, step_failures=session.limits.step_failures + 1)
        return Decision(
            replace(session, limits=limits, dialogue=replace(session.dialogue, corrections=corrections))
        )
    owner = session.tree.owner(task.id)
    failed = task.fail(reason, counted=counted)
    decision = enter_step(changes.with_task(session, failed), Trigger.TASK_ITERATION_COMPLETE)
    changed = TaskChanged(task.id, task.name, owner.name if owner else "", failed.state.value, reason)
    return Decision(decision.session, (changed, *decision.events))


def task_skipped(session: Session, task_id: str) -> TaskChanged:
    """Return the event that tells of a task that a person skipped."""
    task, owner = session.tree.task(task_id), session.tree.owner(task_id)
    assert task is not None
    reason = f"skipped: {task.given_up}"
    return TaskChanged(task.id, task.name, owner.name if owner else "", task.state.value, reason)


def review(session: Session) -> Confirmation | None:
    """Return the confirmation that lopen needs from a person before it does more added work; None if it needs none."""
    added, planned = sum(t.added for t in session.tree.tasks), session.plan.planned_tasks
    if added > max(planned, 1) + session.limits.confirmed_tasks:
        message = f"{added} tasks were added to {planned} planned ones"
        return Confirmation(session.id, AddedTasks(added), message)
    return None


def idle(session: Session) -> Halt:
    """Return the pause for a run that came back to the same state without any change."""
    return Halt(
        "guardrail",
        f"the last iterations changed nothing, and the next would not either (step {session.step.value}); look at "
        f"`lopen log {session.id}`, or plan the module again",
        f"lopen plan {session.module} --new",
    )


def stuck(session: Session) -> Halt | None:
    """Return the pause where all remaining components are given up or depend on such a component."""
    remaining = [c for c in session.tree.components if c.state is not State.COMPLETE]
    if not remaining or any(not c.given_up for c in selectable(session.tree)):
        return None
    names = ", ".join(c.name for c in remaining)
    criteria = ", ".join(i for c in remaining for i in c.open_criteria) or "none"
    kept = ""
    if session.branch and any(task.commit for task in session.tree.tasks):
        kept = f"; to take the complete tasks as they are, which lopen does not call complete: git merge {session.branch}"
    return Halt(
        "guardrail",
        f"not complete: {names} cannot continue because tasks were given up; open criteria: {criteria}; "
        f"a new session plans the remaining work{kept}",
        f"lopen run {session.module} --new",
    )


def scope_lost(session: Session, scope: Scope) -> Halt:
    """Return the pause for a verified module with less than the planned scope, or without a known scope."""
    known = "unknown" if scope.original is None else str(scope.original)
    return Halt(
        "guardrail",
        f"{scope.completed} criteria and components are complete, of {known} that were planned; plan the module again, "
        "so that all are recorded",
        f"lopen plan {session.module} --new",
    )
