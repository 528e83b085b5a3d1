"""Back-pressure over processes: what is told once stays told, what is counted stays counted, what blocks can be answered."""

from __future__ import annotations

import re
from typing import Any

from lopen.models.messages import Usage
from tests.e2e.behaviours import write
from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tools
from tests.project import UNITTEST, Project, build, code, component, plan, task, verified
from tests.ran import Ran


def failing(*calls: Any, note: str = "it broke") -> Any:
    """A turn that gives the first task up after `calls`."""
    return tools(*calls, ("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": note}))


def told(ran: Ran, guard: str) -> list[tuple[str, str]]:
    return [(e["verdict"], e["reason"]) for e in ran.named("guardrail") if e["guard"] == guard]


def prompt(project: Project, number: int) -> str:
    """The system prompt of a request, oldest 0."""
    return "\n".join(block["text"] for block in project.requests[number]["system"])


def test_a_modules_budget_warns_once_asks_once_and_is_told_to_the_model(make_project: MakeProject) -> None:
    script = [
        plan(tasks=("One", "Two", "Three")),
        tools(*code(), *verified("calc-t1"), usage=Usage(820_000, 0)),
        tools(*code("two"), *verified("calc-t2"), usage=Usage(80_000, 0)),
        tools(*code("three"), *verified("calc-t3")),
    ]
    unlimited = {"LOPEN_BUDGET__SESSION_TOKENS": "0", "LOPEN_BUDGET__TASK_TOKENS": "0"}
    project = make_project(script, LOPEN_BUDGET__TOKEN_BUDGET_PER_MODULE="1000000", **unlimited)
    ran = project.build_module(code=3)
    assert [e["alert_type"] for e in ran.named("alert") if e["budget_id"] == "module:calc"] == [
        "warning_threshold",
        "confirmation",
    ]
    assert "warn" not in [verdict for verdict, _ in told(ran, "budget")]  # the alert says it
    session = ran.named("session_paused")[0]["session"]
    assert ran.last_line == f"next: lopen confirm {session}"

    assert project.lopen("resume").code == 3  # nobody confirmed it
    assert project.lopen("confirm", session).code == 0
    ran = project.lopen("resume", "--json")

    assert ran.code == 0, ran.out[-2000:] + ran.err
    assert told(ran, "budget") == []
    assert "Finish the present task by the shortest way" in prompt(project, 3)
    assert re.search(r"module:calc .* 9\d\d,\d{3}/1,000,000 \(9\d%\) tokens", project.lopen("status").out)


def test_failures_are_counted_on_by_the_next_process_and_every_climb_is_kept(
    make_project: MakeProject,
) -> None:
    script = [
        plan(),
        failing(("run_command", {"command": UNITTEST}), *[write(f"part{n}.py", "N = 1\n") for n in range(4)]),
        failing(write("part5.py", "N = 1\n"), note="still broken"),
        failing(note="broken again"),
        build("calc-t1"),
    ]
    project = make_project(script, LOPEN_WORKFLOW__MAX_ITERATIONS="2")
    project.build_module(code=3)

    ran = project.lopen("resume", "--json")

    assert ran.code == 3
    assert told(ran, "tool_discipline") == [("warn", "5 different files were edited since the last test run")]
    assert [verdict for verdict, _ in told(ran, "churn")] == ["warn", "block"]

    session = ran.named("session_paused")[0]["session"]
    assert project.lopen("confirm", session, "--note", "use a table").code == 0
    ran = project.lopen("resume")

    assert ran.code == 0, ran.out + ran.err
    assert "You must change your strategy" in prompt(project, 4)
    assert "use a table" in prompt(project, 4)
    lines = project.lopen("log", "--guardrails").out.splitlines()
    shown = ("tells the model", "alert", "circuit", "not accepted")
    assert [line for line in lines if not any(words in line for words in shown)] == []


def test_the_failures_of_a_step_that_passed_do_not_count_for_the_next(make_project: MakeProject) -> None:
    refused = text("No.", stop_reason="refusal")
    rest = tools(
        ("record_components", {"components": [component("core", "AC-1")]}),
        ("select_component", {"name": "core", "reason": "it is the only one"}),
        ("record_tasks", {"component": "core", "tasks": [task("Write it")]}),
    )
    dependencies = tools(("record_dependencies", {"dependencies": []}))
    project = make_project([*[refused] * 3, dependencies, refused, rest, build("calc-t1")])
    session = project.build_module(code=3).named("session_paused")[0]["session"]
    assert project.lopen("confirm", session).code == 0

    ran = project.lopen("resume", "--json")

    assert ran.code == 0, ran.out + ran.err
    assert "has failed" in prompt(project, 3)
    assert "has failed" not in prompt(project, 5)
