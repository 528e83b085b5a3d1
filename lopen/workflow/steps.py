"""The seven steps and their phases (docs/reference/workflow.md)."""

from __future__ import annotations

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
