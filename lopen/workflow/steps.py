"""Steps, phases, triggers, the table that connects them, and the state machine over it (docs/reference/workflow.md).

The only importer of `transitions`, at the first use because the hook path never needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from lopen.core.errors import LopenError

if TYPE_CHECKING:
    from transitions import Machine

Phase = Literal["requirement_gathering", "planning", "building"]


class Step(StrEnum):
    """A step of the workflow. `COMPLETE` is the end of the workflow rather than a step."""

    DRAFT_SPECIFICATION = "draft_specification"
    DETERMINE_DEPENDENCIES = "determine_dependencies"
    IDENTIFY_COMPONENTS = "identify_components"
    SELECT_NEXT_COMPONENT = "select_next_component"
    BREAK_INTO_TASKS = "break_into_tasks"
    ITERATE_THROUGH_TASKS = "iterate_through_tasks"
    REPEAT = "repeat"
    COMPLETE = "complete"


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


ORDER: tuple[Step, ...] = tuple(Step)
PLANNING_STEPS: frozenset[Step] = frozenset(
    {
        Step.DETERMINE_DEPENDENCIES,
        Step.IDENTIFY_COMPONENTS,
        Step.SELECT_NEXT_COMPONENT,
        Step.BREAK_INTO_TASKS,
    }
)


def number(step: Step) -> int:
    """Return the number of a step, from 1 to 7; 8 for complete."""
    return ORDER.index(step) + 1


def phase_of(step: Step) -> Phase:
    """Return the phase of a step; a complete session is in the building phase."""
    if step is Step.DRAFT_SPECIFICATION:
        return "requirement_gathering"
    return "planning" if step in PLANNING_STEPS else "building"


@dataclass(frozen=True, slots=True)
class Transition:
    """A row of the table: `trigger` leads from `source` to `target`."""

    source: Step
    trigger: Trigger
    target: Step
    when: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition(
        Step.DRAFT_SPECIFICATION,
        Trigger.SPEC_APPROVED,
        Step.DETERMINE_DEPENDENCIES,
        "a person approved the specification",
    ),
    Transition(
        Step.DETERMINE_DEPENDENCIES,
        Trigger.DEPENDENCIES_DETERMINED,
        Step.IDENTIFY_COMPONENTS,
        "the dependencies were recorded",
    ),
    Transition(
        Step.IDENTIFY_COMPONENTS,
        Trigger.COMPONENTS_IDENTIFIED,
        Step.SELECT_NEXT_COMPONENT,
        "components that cover every criterion were recorded",
    ),
    Transition(
        Step.SELECT_NEXT_COMPONENT,
        Trigger.COMPONENT_SELECTED,
        Step.BREAK_INTO_TASKS,
        "a component whose dependencies are complete was selected",
    ),
    Transition(
        Step.SELECT_NEXT_COMPONENT,
        Trigger.MODULE_VERIFIED,
        Step.COMPLETE,
        "no component is left and the module's verification passed",
    ),
    Transition(
        Step.BREAK_INTO_TASKS,
        Trigger.TASKS_BROKEN_DOWN,
        Step.ITERATE_THROUGH_TASKS,
        "the component has open tasks",
    ),
    Transition(
        Step.ITERATE_THROUGH_TASKS,
        Trigger.TASK_ITERATION_COMPLETE,
        Step.ITERATE_THROUGH_TASKS,
        "a task ended and the component is not complete",
    ),
    Transition(
        Step.ITERATE_THROUGH_TASKS,
        Trigger.COMPONENT_COMPLETE,
        Step.REPEAT,
        "all tasks are complete and the component's verification passed",
    ),
    Transition(
        Step.REPEAT,
        Trigger.COMPONENTS_REMAIN,
        Step.SELECT_NEXT_COMPONENT,
        "always",
    ),
)


class IllegalTransition(LopenError):
    """A trigger that the table does not list for the step: a bug in lopen."""


class _Model:
    """The object on which `transitions` stores its state."""

    state: str


def _machine(step: Step) -> Machine:
    from transitions import Machine

    return Machine(
        model=_Model(),
        states=[s.value for s in ORDER],
        transitions=[[t.trigger.value, t.source.value, t.target.value] for t in TRANSITIONS],
        initial=step.value,
        auto_transitions=False,
        send_event=False,
    )


def advance(step: Step, trigger: Trigger) -> Step:
    """Return the step to which `trigger` leads from `step`.

    Raises:
        IllegalTransition: the table has no such row.
    """
    from transitions import MachineError

    machine = _machine(step)
    try:
        machine.events[trigger.value].trigger(machine.models[0])
    except (MachineError, KeyError) as error:
        raise IllegalTransition(f"{trigger.value} cannot fire in step {step.value}") from error
    return Step(machine.models[0].state)


def reachable(start: Step, *, past_gate: bool) -> frozenset[Step]:
    """Return every step that can follow `start`, including `start`; those after the gate only with `past_gate`."""
    found = {start}
    frontier = [start]
    while frontier:
        step = frontier.pop()
        for row in TRANSITIONS:
            if row.source is not step or row.target in found:
                continue
            if row.trigger is Trigger.SPEC_APPROVED and not past_gate:
                continue
            found.add(row.target)
            frontier.append(row.target)
    return frozenset(found)


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
