"""Steps, phases, triggers and the table that connects them (docs/reference/workflow.md). Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

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
