"""Step 1 may record the plan behind its specification: it holds for exactly that text, once a person approves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, text, tools
from tests.fake_api import Answer
from tests.project import Project, build, component, plan, specification, task
from tests.server.serving import serving

SPEC = "specs/calc/SPECIFICATION.md"
WRITE = ("write_spec", {"content": specification()})
PLAN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("record_dependencies", {"dependencies": []}),
    ("record_components", {"components": [component("core", "AC-1")]}),
    ("select_component", {"name": "core", "reason": "it is the only one"}),
    ("record_tasks", {"component": "core", "tasks": [task("Write it")]}),
)


def drafted(make_project: MakeProject, *script: Answer | Callable[[dict[str, Any]], Answer]) -> Project:
    """A project whose specification waits at the gate."""
    project = make_project(list(script))
    ran = project.lopen("run", "calc", "-p", "A module that adds numbers.")
    assert (ran.code, ran.last_line) == (3, "next: lopen approve calc --run"), ran.err
    return project


def drafting(body: dict[str, Any]) -> bool:
    return "Step 1 of 7" in str(body["system"])


def test_the_build_begins_with_the_plan_that_was_approved_with_the_text(make_project: MakeProject) -> None:
    project = drafted(make_project, tools(WRITE, *PLAN), build("calc-t1"))
    assert len(project.requests) == 1
    assert project.status()["step"] == "draft_specification"

    with serving(project) as server:
        gate = server.get("/api/modules/calc/specification")
        page = server.client.get("/modules/calc/specification").text
        assert "The plan that would be built" in page
    (planned,) = gate["plan"]
    assert (planned["component"], planned["criteria"]) == ("core", ["AC-1"])
    assert planned["tasks"] == [{"name": "Write it", "description": "Write it, with its tests."}]
    approved = project.lopen("approve", "calc", "--yes")
    assert "plan (it would be built as it is):\n  core: AC-1\n    Write it: Write it, with its tests." in (
        approved.out
    )
    ran = project.lopen("run", "calc", "--json")

    assert ran.code == 0, ran.err
    draft, builder = project.requests
    assert "Steps 2 to 5 of 7" in str(draft["system"])
    assert "Step 6 of 7" in str(builder["system"])
    assert "A module that adds numbers." in str(draft["system"])
    assert "A module that adds numbers." not in str(builder["system"]), "the specification stands for it"
    entered = [(e["number"], e["reason"]) for e in ran.named("step_entered")]
    assert entered[:2] == [(2, "spec_approved"), (6, "assessment")]
    assert project.status()["status"] == "complete"


def test_planning_alone_goes_as_far_as_the_recorded_plan(make_project: MakeProject) -> None:
    project = drafted(make_project, tools(WRITE, *PLAN), build("calc-t1"))
    assert project.lopen("approve", "calc", "--yes").code == 0
    assert "of 7: working through the tasks" in project.lopen("run", "calc", "--dry-run").out
    planned = project.lopen("plan", "calc")
    assert planned.code == 0, planned.err
    assert len(project.requests) == 1
    assert "Write it" in project.read(".lopen/modules/calc/plan.md")


@pytest.mark.parametrize("when", ["before the approval", "after it"])
def test_a_plan_for_another_text_is_made_anew(make_project: MakeProject, when: str) -> None:
    project = drafted(make_project, tools(WRITE, *PLAN), plan(component("adding", "AC-1")), build("calc-t1"))
    if when == "after it":
        assert project.lopen("approve", "calc", "--yes").code == 0
    project.write(SPEC, specification(extra="\nZero is a number.\n"))
    shown = project.lopen("approve", "calc", "--yes")
    assert "plan (it" not in shown.out
    ran = project.lopen("run", "calc")
    assert ran.code == 0, ran.out + ran.err
    assert "it is planned anew" in ran.out
    assert "Steps 2 to 5 of 7" in str(project.requests[1]["system"])
    assert "A module that adds numbers." in str(project.requests[1]["system"])
    assert [c["name"] for c in project.status()["components"]] == ["adding"]


def test_step_1_ends_without_a_plan_and_mends_one_that_is_refused(make_project: MakeProject) -> None:
    refused: list[str] = []

    def mended(body: dict[str, Any]) -> Answer:
        refused.append(last_result(body, "record_tasks").text)
        return tools(*PLAN[1:])

    unknown = ("record_components", {"components": [component("core", "AC-7")]})
    draft = tools(WRITE, PLAN[0], unknown, *PLAN[2:])
    project = drafted(make_project, tools(*PLAN), draft, mended, build("calc-t1"))
    before = last_result(project.requests[1], "record_dependencies").text
    assert "record_dependencies belongs to step 2" in before
    assert "this is step 3 (identify_components)" in refused[0]
    assert project.approved_run().code == 0

    other = make_project([tools(WRITE), text("It is written."), plan(), build("calc-t1")], name="other")
    assert other.lopen("run", "calc", "-p", "A module that adds numbers.").code == 3
    assert "record its plan" in last_result(other.requests[1], "write_spec").text
    assert other.approved_run().code == 0


def test_a_draft_that_is_killed_before_its_plan_goes_on_with_it(make_project: MakeProject) -> None:
    project = make_project([tools(WRITE, *PLAN), build("calc-t1")])
    killed = project.ended_at(
        "before:lopen.workflow.changes:record_components", "run", "calc", "-p", "A module that adds numbers."
    )
    assert killed.code < 0
    assert project.read(SPEC) == specification()

    resumed = project.lopen("resume")

    assert (resumed.code, resumed.last_line) == (3, "next: lopen approve calc --run")
    ran = project.approved_run()
    assert ran.code == 0, ran.out + ran.err
    assert [drafting(body) for body in project.requests] == [True, False]


def test_a_killed_draft_that_a_person_approves_is_planned_from_where_it_was(
    make_project: MakeProject,
) -> None:
    project = make_project([tools(WRITE, *PLAN), tools(*PLAN[1:]), build("calc-t1")])
    project.ended_at(
        "before:lopen.workflow.changes:record_components", "run", "calc", "-p", "A module that adds numbers."
    )
    ran = project.approved_run()
    assert ran.code == 0, ran.out + ran.err
    assert "You are in step 3" in str(project.requests[1]["messages"])
