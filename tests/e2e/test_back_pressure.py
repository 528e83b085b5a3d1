"""Back-pressure over processes: what is told once stays told, what is counted stays counted, what blocks can be answered."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from lopen.models.messages import Usage
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from tests.e2e.behaviours import write
from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tool_results, tools
from tests.project import UNITTEST, Project, build, code, plan, verified
from tests.ran import Ran
from tests.sessions import changed


def failing(*calls: Any, note: str = "it broke") -> Any:
    """A turn that gives the first task up after `calls`."""
    return tools(*calls, ("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": note}))


def told(ran: Ran, guard: str) -> list[tuple[str, str]]:
    return [(e["verdict"], e["reason"]) for e in ran.named("guardrail") if e["guard"] == guard]


def prompt(project: Project, number: int) -> str:
    """The system prompt of a request, oldest 0."""
    return "\n".join(block["text"] for block in project.requests[number]["system"])


def state(project: Project) -> Database:
    return Database(project.root / ".lopen" / "state.db")


def test_a_modules_budget_warns_once_asks_once_and_is_told_to_the_model(make_project: MakeProject) -> None:
    script = [
        plan(tasks=("One", "Two", "Three")),
        tools(*code(), *verified("calc-t1"), usage=Usage(820_000, 0)),
        tools(*code("two"), *verified("calc-t2"), usage=Usage(80_000, 0)),
        tools(*code("three"), *verified("calc-t3")),
    ]
    unlimited = {"LOPEN_BUDGET__SESSION_TOKENS": "0", "LOPEN_BUDGET__TASK_TOKENS": "0"}
    project = make_project(script, LOPEN_BUDGET__TOKEN_BUDGET_PER_MODULE="1000000", **unlimited)
    project.specify()

    ran = project.lopen("approve", "calc", "--yes", "--run", "--json")
    assert ran.code == 3
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
    project.specify()
    assert project.lopen("approve", "calc", "--yes", "--run").code == 3

    ran = project.lopen("resume", "--json")

    assert ran.code == 3
    assert told(ran, "tool_discipline") == [("warn", "5 files were edited since the last test run")]
    assert [(e["before"], e["after"], e["failures"]) for e in ran.named("escalation")] == [
        ("normal", "warning", 2),
        ("warning", "intervention", 3),
    ]
    assert told(ran, "churn")[-1][0] == "block"

    session = ran.named("session_paused")[0]["session"]
    assert project.lopen("confirm", session, "--note", "use a table").code == 0
    ran = project.lopen("resume")

    assert ran.code == 0, ran.out + ran.err
    assert "You must change your strategy" in prompt(project, 4)
    assert "use a table" in prompt(project, 4)
    lines = project.lopen("log", "--guardrails").out.splitlines()
    assert [line for line in lines if "no more failures in a row; lopen continues" in line]
    shown = ("guardrail", "alert", "circuit", "in a row", "until a person confirms")
    assert all(any(words in line for words in shown) for line in lines)


def test_nothing_is_built_on_an_unknown_scope(make_project: MakeProject) -> None:
    """Assessment goes back to the step that records it; the guard behind it is held by its own tests."""
    components = [(b["name"], b["input"]) for b in plan().content][1:3]
    project = make_project([plan(), tools(*components), build("calc-t1")])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    assert project.lopen("plan", "calc").code == 0
    database = state(project)
    store = SessionStore(database)
    session = store.latest(module="calc")
    assert session is not None
    store.save(changed(session, original_scope=None), datetime.now(UTC))
    database.close()

    ran = project.lopen("resume", "--json")

    assert ran.named("step_entered")[0]["step"] == "identify_components"
    assert ran.code == 0, ran.out[-2000:] + ran.err
    assert project.status()["scope"] == {"completed": 2, "original": 2}


def test_questions_are_answered_with_what_is_offered_and_end(make_project: MakeProject) -> None:
    """Step 6 has no `ask_user`; in planning the third question is told to be the last."""
    asked = [("ask_user", {"question": f"Which tone {n}?", "default": "red"}) for n in range(4)]
    assumed = {"task_id": "calc-t1", "status": "complete", "note": "Assumed: halves round up."}
    project = make_project(
        [
            tools(*asked),
            plan(),
            text("Should halves round up?"),
            tools(*code(), *verified("calc-t1")[:2], ("update_task_status", assumed)),
        ]
    )
    project.specify()
    ran = project.drive(LOPEN_WORKFLOW__UNATTENDED="true")
    assert ran.code == 0, ran.err
    told = ["stop asking" in r.data.get("hint", "") for r in tool_results(project.requests[1])]
    assert told == [False, False, True, True]
    reminder = project.requests[3]["messages"][-1]["content"][-1]["text"]
    assert "ask_user" not in reminder
    assert "note of update_task_status" in reminder
    assert "calc-t1: Assumed: halves round up." in ran.named("session_complete")[0]["assumptions"]


def test_planning_and_people_are_told_what_the_repository_lacks(make_project: MakeProject) -> None:
    project = make_project([plan(), tools(*code(), *verified("calc-t1"))])
    project.specify()

    ran = project.lopen("approve", "calc", "--yes", "--run", "--json")

    assert ran.code == 0, ran.out[-2000:] + ran.err
    assert "Missing here: a linter (verify-lint is none), a pre-commit hook" in prompt(project, 0)
    assert "Only a person adds these: plan none of them." in prompt(project, 0)
    assert "Missing here" not in prompt(project, 1)
    assert [e for e in ran.named("notice") if e["message"].startswith("this repository lacks a linter")]


def test_the_model_hears_why_a_circuit_stopped_it_once_a_person_let_it_go_on(
    make_project: MakeProject,
) -> None:
    stuck = tools(*[("read_file", {"path": "README.md"})] * 5)
    project = make_project([plan(), stuck, build("calc-t1")])
    project.specify()
    ran = project.lopen("approve", "calc", "--yes", "--run", "--json")
    assert ran.code == 3
    circuit = f"session:{ran.named('session_paused')[0]['session']}"
    assert ran.last_line == f"next: lopen circuit ack {circuit}"
    assert project.lopen("status").last_line == ran.last_line
    go_on = f"next: lopen resume {circuit.removeprefix('session:')}"
    for _ in range(2):  # the second finds nothing to acknowledge
        assert project.lopen("circuit", "ack", circuit).last_line == go_on
    status = project.lopen("status")
    assert status.last_line == go_on
    assert "circuit ack" not in status.out

    ran = project.lopen("resume")

    assert ran.code == 0, ran.out + ran.err
    assert "circuit_breaker: Circuit breaker tripped: read_file was called 5 times" in prompt(project, 2)
    assert tool_results(project.requests[2]) == []  # fresh context


def test_the_same_guards_hold_through_plan_build_and_replay(make_project: MakeProject) -> None:
    asks = text("I have written the plan. Would you like me to continue?")
    gives_up = [failing(note=f"broke {n}") for n in range(3)]
    project = make_project([asks, plan(), *gives_up, build("calc-t1")])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0

    planned = project.lopen("plan", "calc", "--json")
    built = project.lopen("build", "calc", "--json")

    assert planned.code == 0, planned.out[-2000:] + planned.err
    assert [verdict for verdict, _ in told(planned, "premature_stop")] == ["warn"]
    assert built.code == 3
    assert told(built, "churn")[-1][0] == "block"
    (paused,) = built.named("session_paused")
    assert paused["kind"] == "confirmation"

    replayed = project.lopen("replay", paused["session"], "--json")

    assert told(replayed, "premature_stop") == told(planned, "premature_stop")
    assert told(replayed, "churn") == told(built, "churn")
    assert replayed.named("session_paused")[-1]["kind"] == paused["kind"]
