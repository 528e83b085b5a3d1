"""From a specification to a built, verified and committed module."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import build, code, component, plan, specification, task, verified


def test_a_module_of_one_task_is_built_in_three_requests(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()

    at_the_gate = project.spawned("run", "calc")
    assert at_the_gate.code == 3
    assert at_the_gate.last_line == "next: lopen approve calc --run"

    assert project.spawned("approve", "calc", "--yes").code == 0
    ran = project.spawned("run", "calc")

    assert ran.code == 0, ran.err
    assert len(project.requests) == 2
    assert len(project.oracle_requests) == 1
    assert project.subjects("lopen/calc") == [
        "Begin",
        "docs(calc): approve specification",
        "feat(calc): complete Write it in core",
    ]
    assert project.git("log", "-1", "--format=%b", "lopen/calc").splitlines() == [
        f"Lopen-Session: {project.status()['session']}",
        "Lopen-Task: calc-t1",
        "Lopen-Verdict: passed (high)",
    ]
    assert "lopen merge calc" in ran.out
    assert project.git("status", "--porcelain").split() == ["??", ".lopen/", "??", "specs/"]
    assert project.status()["status"] == "complete"


def test_two_components_are_built_in_the_order_of_their_dependencies(make_project: MakeProject) -> None:
    second = tools(
        ("select_component", {"name": "report", "reason": "core is complete"}),
        ("record_tasks", {"component": "report", "tasks": [task("Print it")]}),
    )
    script = [
        plan(
            component("core", "AC-1"),
            component("report", "AC-2", depends_on=["core"]),
            tasks=("Add", "Subtract"),
        ),
        build("calc-t1"),
        tools(*code("sub", "a + b"), *verified("calc-t2")),
        second,
        tools(*code("report"), *verified("calc-t3")),
    ]
    project = make_project(script)
    project.run_module(text=specification(criteria=("it adds", "it reports")))
    assert project.subjects()[2:] == [
        "feat(calc): complete Add in core",
        "feat(calc): complete Subtract in core",
        "feat(calc): complete Print it in report",
    ]
    states = {c["name"]: c["state"] for c in project.status()["components"]}
    assert states == {"core": "complete", "report": "complete"}
