"""Boundaries are judged by themselves, become tasks where they fail, and ask a person where they keep failing."""

from __future__ import annotations

import json
import sqlite3

from tests.e2e.conftest import MakeProject
from tests.endpoint import opening, tools, verdict
from tests.project import build, code, component, plan, specification, verified


def test_a_record_that_shrank_its_scope_or_completed_itself_pauses_before_a_model_is_asked(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(tasks=("One", "Two"))])
    project.approve_module()
    assert project.lopen("plan", "calc").code == 0
    with sqlite3.connect(project.root / ".lopen" / "state.db") as database:
        body = json.loads(database.execute("SELECT body FROM sessions").fetchone()[0])
        body["plan"]["original_scope"] = 99
        body["plan"]["tree"]["components"][0]["tasks"][0]["state"] = "complete"
        database.execute("UPDATE sessions SET body=?", (json.dumps(body),))
    ran = project.lopen("run", "calc", "--json")
    assert ran.code == 3
    raised = [(e["guard"], e["verdict"]) for e in ran.named("guardrail")]
    assert raised == [("scope_continuity", "block"), ("quality_gate", "block")]
    assert "of 99 that" in ran.named("session_paused")[0]["message"]
    assert len(project.requests) == 1


def test_what_cannot_be_told_at_a_boundary_waits_there(make_project: MakeProject) -> None:
    doubt = verdict(passed=True, confidence="low", summary="Too little is shown.")
    project = make_project(
        [
            plan(tasks=("One", "Two")),
            build("calc-t1", "one"),
            build("calc-t2", "two"),
            *[tools(*verified("calc-t2"))] * 2,
        ],
        oracle=[verdict(), doubt, doubt],
    )
    ran = project.build_module(code=3)
    assert ran.named("session_paused")[0]["kind"] == "confirmation"
    assert project.resume().code == 3, "only a person's word lets it through"
    assert len(project.oracle_requests) == 3
    assert project.lopen("confirm", ran.named("session_paused")[0]["session"]).code == 0
    resumed = project.resume()
    assert resumed.code == 0, resumed.err
    assert len(project.oracle_requests) == 3


def test_the_last_task_is_judged_with_the_whole_module_while_its_builder_can_mend_it(
    make_project: MakeProject,
) -> None:
    wanting = {"id": "AC-2", "holds": "no", "evidence": "calc.py has no report"}
    script = [
        plan(component("core", "AC-1", "AC-2"), tasks=("One", "Two")),
        build("calc-t1"),
        tools(*verified("calc-t2")),
        tools(*code("report"), *verified("calc-t2")),
    ]
    project = make_project(script, oracle=[verdict(), verdict(criteria=[wanting]), verdict()])
    ran = project.build_module(text=specification(criteria=("it adds", "it reports")))
    given = [(v["scope"], v["passed"], v["cached"]) for v in ran.named("verdict_given")]
    assert given[:3] == [("task", True, False), ("module", False, False), ("module", True, False)]
    assert (
        given[3:] == [("module", True, True)] * 2
    )  # the component and the module need no judge of their own
    assert "AC-2 does not hold: calc.py has no report" in json.dumps(project.requests[3]["messages"])


def test_a_wider_boundary_whose_command_fails_is_mended_in_the_last_task(make_project: MakeProject) -> None:
    script = [
        plan(),
        tools(*code(), *verified("calc-t1")),
        tools(*code("built"), *verified("calc-t1")),
    ]
    project = make_project(script)
    ran = project.build_module(text=specification(commands={"verify-build": "ls built.py"}))
    given = [(v["scope"], v["passed"]) for v in ran.named("verdict_given") if not v["cached"]]
    assert given == [("module", False), ("module", True)]
    assert "built.py" in json.dumps(project.requests[2]["messages"][-1])
    assert len(project.oracle_requests) == 1


def test_three_failed_boundaries_in_a_row_ask_for_confirmation(make_project: MakeProject) -> None:
    there = [component(name, state="done", depends_on=["core"], evidence=["README.md"]) for name in "abc"]
    tries = [tools(*code(value=f"a + b + {n} - {n}"), *verified(f"calc-t{n}")) for n in range(1, 7)]
    failing = verdict(passed=False, summary="Not yet.")
    project = make_project(
        [plan(component("core", "AC-1"), *there, tasks=("One", "Two", "Three")), *tries],
        oracle=[*[verdict()] * 3, *[failing] * 3],
    )
    ran = project.build_module(code=3)
    paused = ran.named("session_paused")[0]
    assert paused["kind"] == "confirmation"
    assert paused["message"] == "component c was not accepted in 3 attempts: Not yet"
    assert ran.last_line == f"next: lopen confirm {paused['session']}"
    added = [(t["task"], t["component"]) for t in ran.named("task_changed") if t["state"] == "pending"]
    assert added == [("calc-t4", "a"), ("calc-t5", "b"), ("calc-t6", "c")]
    assert project.resume().code == 3  # nothing but the confirmation lets it go on
    confirmed = project.lopen("confirm", paused["session"], "--note", "mind the negative numbers")
    assert confirmed.code == 0, confirmed.err
    project.resume()
    assert "mind the negative numbers" in json.dumps(project.requests)


def test_a_wider_boundary_builds_on_the_narrower_verdicts(make_project: MakeProject) -> None:
    holds = [{"id": "AC-1", "holds": "yes", "evidence": "one.py:1"}]
    project = make_project(
        [plan(tasks=("One", "Two")), build("calc-t1", "one"), build("calc-t2", "two")],
        oracle=[verdict(criteria=holds, summary="One adds."), verdict()],
    )
    project.build_module()
    task, module = map(opening, project.oracle_requests)
    assert "The task was planned as a part of the component" in task
    assert 'calc-t1 "One": passed (high): One adds.\n  AC-1: yes: one.py:1' in module
    assert "1 +def add(a, b):" in task.partition("# Diff since the work began")[2]
    assert '"one.py": ' in module.partition("# Not shown")[2]  # an accepted verdict saw it; the tools show it
    assert "Task Two (one of 2" in module
    assert "Task One" not in module
    assert (
        module.partition("# Diff since the last accepted verdict")[2].count("+def add(a, b):") == 1
    )  # two.py's alone
    assert '"test_one.py": ' in module.partition("# Tests by file")[2]
