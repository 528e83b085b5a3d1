"""The table and the machine over it: these rows and no others."""

from __future__ import annotations

import re

import pytest

from lopen.workflow.next_step import TRANSITIONS, IllegalTransition, Trigger, enter_step, mermaid
from lopen.workflow.steps import ORDER, PLANNING_STEPS, Step, number, phase_of
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.sessions import changed
from tests.workflow.examples import building

# The table of docs/reference/workflow.md, row by row
CONTRACT = {
    (1, "spec_approved"): 2,
    (2, "dependencies_determined"): 3,
    (3, "components_identified"): 4,
    (4, "component_selected"): 5,
    (4, "module_verified"): 8,
    (5, "tasks_broken_down"): 6,
    (6, "task_iteration_complete"): 6,
    (6, "component_complete"): 7,
    (7, "components_remain"): 4,
}


def test_the_table_has_these_rows() -> None:
    rows = {(number(t.source), t.trigger.value): number(t.target) for t in TRANSITIONS}
    assert rows == CONTRACT
    assert len(TRANSITIONS) == len(CONTRACT)
    assert all(t.when for t in TRANSITIONS)


def test_steps_have_the_numbers_and_phases_that_people_know() -> None:
    assert [number(s) for s in ORDER] == list(range(1, 9))
    phases = [phase_of(s) for s in ORDER]
    assert phases == ["requirement_gathering", *["planning"] * 4, *["building"] * 3]
    assert {s for s in Step if phase_of(s) == "planning"} == PLANNING_STEPS


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("trigger", Trigger)
def test_a_trigger_fires_only_where_the_table_has_a_row(step: Step, trigger: Trigger) -> None:
    component = Component("c", "C", tasks=(Task("t", "T", state=State.COMPLETE),), verified=True)
    shown = changed(building(), step=step, tree=TaskTree((component,)), selected="c")
    target = CONTRACT.get((number(step), trigger.value))
    if target is not None:
        assert number(enter_step(shown, trigger).session.step) == target
        return
    with pytest.raises(IllegalTransition, match=f"{trigger.value} cannot fire in step {step.value}"):
        enter_step(shown, trigger)


def test_the_diagram_shows_every_row_each_step_in_its_phase_and_nothing_else() -> None:
    lines = mermaid().splitlines()
    edges = {m.groups() for line in lines if (m := re.fullmatch(r"    (\w+) --> (\w+): (\w+)", line))}
    assert edges == {(t.source.value, t.target.value, t.trigger.value) for t in TRANSITIONS}
    inside: dict[str, list[str]] = {}
    phase = ""
    for line in lines:
        if opened := re.fullmatch(r"    state (\w+) \{", line):
            phase = opened[1]
        elif line.startswith("        "):
            inside.setdefault(phase, []).append(line.strip())
    assert inside == {
        name: [s.value for s in ORDER if s is not Step.COMPLETE and phase_of(s) == name]
        for name in ("requirement_gathering", "planning", "building")
    }
    assert lines[0] == "stateDiagram-v2"
    assert lines[1] == "    [*] --> draft_specification"
    assert lines[-1] == "    complete --> [*]"
