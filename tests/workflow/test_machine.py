"""The table and the machine over it: these rows and no others."""

from __future__ import annotations

import re

import pytest

from lopen.workflow.next_step import TRANSITIONS, IllegalTransition, Trigger, enter_step, mermaid
from lopen.workflow.steps import ORDER, PLANNING_STEPS, Step, number
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


def test_the_diagram_shows_every_row_and_each_step_in_its_phase() -> None:
    text = mermaid()
    edges = set(re.findall(r"^    (\w+) --> (\w+): (\w+)$", text, re.MULTILINE))
    assert edges == {(t.source.value, t.target.value, t.trigger.value) for t in TRANSITIONS}
    planning = text.partition("state planning {")[2].partition("}")[0].split()
    assert planning == [step.value for step in ORDER if step in PLANNING_STEPS]
