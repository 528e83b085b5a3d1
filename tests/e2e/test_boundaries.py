"""Boundaries that keep failing ask a person, also where components pass in between."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from lopen.loop import boundaries
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools, verdict
from tests.project import Project, build, component, plan, specification, task

WRONG = {"severity": "error", "message": "the module does not hold together", "criterion": "AC-2"}


def script_of_two_components(added: int) -> list[Any]:
    """Three planned tasks in two components, then as many added ones as the run asks for."""
    return [
        plan(
            component("core", "AC-1"), component("shell", "AC-2", depends_on=["core"]), tasks=("One", "Two")
        ),
        build("calc-t1", "one"),
        build("calc-t2", "two"),
        tools(
            ("select_component", {"name": "shell", "reason": "it is left"}),
            ("record_tasks", {"component": "shell", "tasks": [task("Three")]}),
        ),
        build("calc-t3", "three"),
        *(build(f"calc-t{n}", f"part{n}") for n in range(4, 4 + added)),
    ]


def by_scope(module: Any) -> Any:
    """An oracle that passes tasks and components, and answers `module` about the module."""

    def answer(body: Any) -> Any:
        said = str(body["messages"])
        return module if "Module calc" in said else verdict()

    return answer


def assert_asks_after_three_failures(project: Project) -> None:
    ran = project.drive()
    assert ran.code == 3, ran.err
    paused = ran.named("session_paused")[0]
    assert (paused["kind"], paused["message"]) == ("confirmation", "3 boundary verifications failed in a row")
    assert project.endpoint is not None
    assert project.endpoint.left == 17, (
        "three tasks were added and two of them built before a person was asked"
    )


def test_a_module_whose_build_always_fails_asks_a_person(make_project: MakeProject) -> None:
    project = make_project(script_of_two_components(added=19))
    criteria = ("add(1, 2) is 3", "sums hold")
    project.specify(text=specification(criteria=criteria, commands={"verify-build": "false"}))
    assert_asks_after_three_failures(project)


def test_a_module_that_the_oracle_never_passes_asks_a_person(make_project: MakeProject) -> None:
    project = make_project(
        script_of_two_components(added=19), oracle=by_scope(verdict(passed=False, findings=[WRONG]))
    )
    project.specify(text=specification(criteria=("add(1, 2) is 3", "sums hold")))
    assert_asks_after_three_failures(project)


def test_a_scope_that_cannot_be_reached_pauses_after_one_verdict(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    assert project.lopen("plan", "calc").code == 0
    with sqlite3.connect(project.root / ".lopen" / "state.db") as database:
        body = json.loads(database.execute("SELECT body FROM sessions").fetchone()[0])
        database.execute("UPDATE sessions SET body=?", (json.dumps(body | {"original_scope": 99}),))
    ran = project.lopen("build", "calc", "--json")
    assert ran.code == 3
    assert "the original scope is 99" in ran.named("session_paused")[0]["message"]
    assert sum(not e["cached"] for e in ran.named("verdict_given")) == 1


def lose_what_passed() -> None:
    """Break lopen so that a component's passed verification is not kept."""
    boundaries._component_passed = lambda session, component: session


def test_iterations_that_change_nothing_pause(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    arranged = [["tests.e2e.test_boundaries:lose_what_passed"]]
    ran = project.lopen("approve", "calc", "--yes", "--run", "--json", arrange=arranged)
    assert ran.code == 3, ran.err
    paused = ran.named("session_paused")[0]
    assert paused["kind"] == "guardrail"
    assert "changed nothing" in paused["message"]
    assert len(ran.named("verdict_given")) < 8
