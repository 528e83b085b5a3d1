"""Tools of steps 2 to 5: each records its result and moves the session on, all of them in one turn where wanted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lopen.core.events import PlanRecorded, StepEntered
from lopen.tools.calls import ToolResult
from lopen.tools.workbench import Workbench
from lopen.workflow import changes
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.tools.examples import Bench, bench
from tests.workflow.examples import APPROVAL, session
from tests.workflow.trees import completed

DEPENDENCY = {"name": "math", "kind": "library", "reason": "sums", "available": True}


def begun(**fields: Any) -> Session:
    """An approved session at step 2."""
    return session(step=Step.DETERMINE_DEPENDENCIES, approval=APPROVAL, **fields)


def component(name: str, *criteria: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "acceptance_criteria": list(criteria), **more}


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", **more}


def told(at: Bench) -> list[object]:
    """What was recorded, in order."""
    kept = [r.event for r in at.store.events(at.at.session.id)]
    return [
        e.trigger if hasattr(e, "trigger") else e for e in kept if isinstance(e, PlanRecorded | StepEntered)
    ]


def test_all_of_planning_may_be_recorded_in_one_turn(root: Path) -> None:
    at = bench(root, begun())
    answers = [
        at.call(
            "record_dependencies",
            dependencies=[DEPENDENCY, {**DEPENDENCY, "name": "mpmath", "available": False}],
        ),
        at.call(
            "record_components",
            components=[component("Core", "AC-1"), component("Shell", "AC-2", depends_on=["core"])],
        ),
        at.call("select_component", name="core", reason="first"),
        at.call(
            "record_tasks",
            component="Core",
            tasks=[task("Add", subtasks=["one", "two"], type="test"), task("Divide")],
        ),
    ]
    assert [dict(a.fields) for a in answers] == [
        {"step": "identify_components", "not_available": ["mpmath"]},
        {
            "components": [{"id": "core", "name": "Core"}, {"id": "shell", "name": "Shell"}],
            "step": "select_next_component",
        },
        {"component": "Core", "step": "break_into_tasks"},
        {
            "tasks": [{"id": "calc-t100", "name": "Add"}, {"id": "calc-t101", "name": "Divide"}],
            "step": "iterate_through_tasks",
        },
    ]
    after = at.at.session
    assert at.recorded
    assert (after.step, after.plan.selected, after.plan.original_scope, after.plan.planned_tasks) == (
        Step.ITERATE_THROUGH_TASKS,
        "core",
        4,
        2,
    )
    add = after.tree.task("calc-t100")
    assert add is not None
    assert ([s.name for s in add.subtasks], add.type, add.state) == (["one", "two"], "test", State.PENDING)
    assert [e.names for e in told(at) if isinstance(e, PlanRecorded)] == [
        ("math", "mpmath"),
        ("Core", "Shell"),
        ("Core",),
        ("Add", "Divide"),
    ]
    kept = at.store.load(after.id)
    assert (kept.step, kept.tree) == (after.step, after.tree), "what is recorded is durable"


def test_a_result_that_is_not_valid_records_nothing_and_moves_nothing(root: Path) -> None:
    at = bench(root, replace(begun(dependencies=()), step=Step.IDENTIFY_COMPONENTS))
    before = at.at.session
    refused = at.call("record_components", components=[component("Core", "AC-1", spec_sections=["Gone"])])
    assert not refused.ok
    assert "no section 'Gone'" in refused.fields["error"]
    assert "no component covers AC-2" in refused.fields["error"]
    assert at.at.session is before
    assert not at.recorded


def test_new_dependencies_want_the_components_again(root: Path) -> None:
    tree = TaskTree((Component("core", "Core", tasks=(Task("t", "T"),)),))
    at = bench(root, begun(tree=tree))
    at.call("record_dependencies", dependencies=[])
    assert at.at.session.plan.replan is Step.IDENTIFY_COMPONENTS
    assert at.at.session.tree is tree
    at.call("record_components", components=[component("Core", "AC-1", "AC-2")])
    assert at.at.session.plan.replan is None


def at_selection(root: Path, *components: Component) -> Bench:
    planned = begun(tree=TaskTree(components), dependencies=(), original_scope=2)
    return bench(root, replace(planned, step=Step.SELECT_NEXT_COMPONENT))


CORE = Component("core", "Core", tasks=(Task("t", "T"),))
SHELL = Component("shell", "Shell", depends_on=("core",))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Nothing", "there is no component 'Nothing'"),
        ("shell", "Shell cannot be selected: it waits for core"),
        ("old", "Old cannot be selected: it is complete"),
    ],
)
def test_what_cannot_be_selected_is_said_with_what_can(root: Path, name: str, said: str) -> None:
    at = at_selection(root, CORE, SHELL, completed(Component("old", "Old")))
    refused = at.call("select_component", name=name, reason="r")
    assert (refused.fields["error"], refused.fields["hint"]) == (said, "selectable: Core")
    assert at.at.session.step is Step.SELECT_NEXT_COMPONENT


def test_what_was_recorded_as_done_is_verified_before_it_is_selected(root: Path) -> None:
    at = at_selection(root, replace(CORE, tasks=(), found="done"), SHELL)

    def verify(wanted: Workbench) -> None:
        tree = wanted.session.tree
        wanted.journal.save(changes.complete_component(wanted.session, tree.components[0].id))

    at.steps.verify_done = verify
    assert at.call("select_component", name="shell", reason="r").ok


def breaking(root: Path, *, tasks: tuple[Task, ...] = ()) -> Bench:
    tree = TaskTree((Component("core", "Core", tasks=tasks), SHELL))
    wanted = begun(tree=tree, dependencies=(), selected="core")
    return bench(root, replace(wanted, step=Step.BREAK_INTO_TASKS))


def error(result: ToolResult) -> tuple[str, str]:
    return result.fields["error"], result.fields.get("hint", "")


def test_tasks_are_for_the_selected_component_and_each_has_a_name_of_its_own(root: Path) -> None:
    finished = Task("calc-t1", "Add", state=State.COMPLETE, commit="c" * 40)
    at = breaking(root, tasks=(finished,))
    assert error(at.call("record_tasks", component="Shell", tasks=[task("X")])) == (
        "'Shell' is not the selected component",
        "the selected component is 'Core'",
    )
    for names in (["Divide", "divide"], ["ADD"]):
        refused = at.call("record_tasks", component="core", tasks=[task(n) for n in names])
        assert "two tasks are named" in refused.fields["error"]
    assert at.at.session.tree.components[0].tasks == (finished,)
    at.call("record_tasks", component="core", tasks=[task("Divide")])
    core = at.at.session.tree.components[0]
    assert [t.name for t in core.tasks] == ["Add", "Divide"]
    assert (core.broken_down, core.verified) == (True, False)
