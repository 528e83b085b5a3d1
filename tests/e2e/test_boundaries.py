"""Boundaries are judged by themselves, become tasks where they fail, and ask a person where they keep failing."""

from __future__ import annotations

import json
import sqlite3

from tests.e2e.conftest import MakeProject
from tests.endpoint import opening, tools, verdict
from tests.project import build, code, component, plan, specification, verified

WRONG = {"severity": "error", "message": "the module does not hold together", "criterion": "AC-2"}


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
    assert "the original scope is 99" in ran.named("session_paused")[0]["message"]
    assert len(project.requests) == 1


def test_what_cannot_be_told_at_a_boundary_waits_there(make_project: MakeProject) -> None:
    doubt = verdict(passed=True, confidence="low", summary="Too little is shown.")
    project = make_project(
        [plan(tasks=("One", "Two")), build("calc-t1", "one"), build("calc-t2", "two")],
        oracle=[verdict(), verdict(), doubt, doubt],
    )
    ran = project.build_module(code=3)
    assert ran.named("session_paused")[0]["kind"] == "confirmation"
    assert project.resume().code == 3, "only a person's word lets it through"
    assert len(project.oracle_requests) == 4
    assert project.lopen("confirm", ran.named("session_paused")[0]["session"]).code == 0
    resumed = project.resume()
    assert resumed.code == 0, resumed.err
    assert len(project.oracle_requests) == 4


def test_a_wider_boundary_is_judged_itself_where_the_last_task_changed_nothing(
    make_project: MakeProject,
) -> None:
    wanting = {"id": "AC-2", "holds": "no", "evidence": "calc.py has no report"}
    script = [
        plan(component("core", "AC-1", "AC-2"), tasks=("One", "Two")),
        build("calc-t1"),
        tools(*verified("calc-t2")),
        tools(*code("report"), *verified("calc-t3")),
    ]
    oracle = [verdict(), verdict(), verdict(criteria=[wanting]), *[verdict()] * 2]
    project = make_project(script, oracle=oracle)
    ran = project.build_module(text=specification(criteria=("it adds", "it reports")))
    given = [(v["scope"], v["passed"], v["cached"]) for v in ran.named("verdict_given")]
    assert given[:3] == [("task", True, False), ("task", True, False), ("module", False, False)]
    assert given[3:] == [("task", True, False), ("module", True, False), ("module", True, True)]
    added = json.dumps(project.requests[3]["system"])
    assert "AC-2 does not hold: calc.py has no report" in added


def test_a_failed_boundary_becomes_a_task_of_the_component_that_covers_it(make_project: MakeProject) -> None:
    chosen = tools(
        ("select_component", {"name": "report", "reason": "core is complete"}),
        (
            "record_tasks",
            {"component": "report", "tasks": [{"name": "Print it", "description": "With its test."}]},
        ),
    )
    script = [
        plan(component("core", "AC-1"), component("report", "AC-2", depends_on=["core"])),
        build("calc-t1"),
        chosen,
        tools(*code("report"), *verified("calc-t2")),
        tools(*code(value="b + a"), *verified("calc-t3")),
    ]
    oracle = [
        verdict(),
        verdict(),
        verdict(passed=False, summary="Not yet.", findings=[{**WRONG, "criterion": "AC-1"}]),
        *[verdict()] * 3,
    ]
    project = make_project(script, oracle=oracle)
    ran = project.build_module(text=specification(criteria=("it adds", "it reports")))
    scopes = [(v["scope"], v["subject"], v["passed"]) for v in ran.named("verdict_given") if not v["cached"]]
    assert scopes[:3] == [
        ("component", "core", True),
        ("component", "report", True),
        ("module", "calc", False),
    ]
    assert project.subjects()[-1] == "feat(calc): complete Fix what the module verification found in core"
    prompt = json.dumps(project.requests[4]["system"])
    assert "the module does not hold together" in prompt
    added = [t for t in ran.named("task_changed") if t["task"] == "calc-t3"]
    assert (added[0]["state"], added[0]["component"]) == ("pending", "core")


def test_three_failed_boundaries_in_a_row_ask_for_confirmation(make_project: MakeProject) -> None:
    names = ("One", "Two", "Three")
    tries = [tools(*code(value=f"a + b + {n} - {n}"), *verified(f"calc-t{n}")) for n in range(1, 7)]
    failing = verdict(passed=False, summary="Not yet.")
    passing = verdict()
    oracle = [passing, passing, passing, failing, passing, failing, passing, failing, passing, passing]
    project = make_project([plan(tasks=names), *tries], oracle=oracle)
    ran = project.build_module(code=3)
    paused = ran.named("session_paused")[0]
    assert paused["kind"] == "confirmation"
    assert "3 boundary verifications failed" in paused["message"]
    assert ran.last_line == f"next: lopen confirm {paused['session']}"
    assert project.resume().code == 3  # nothing but the confirmation lets it go on
    confirmed = project.lopen("confirm", paused["session"], "--note", "mind the negative numbers")
    assert confirmed.code == 0, confirmed.err
    resumed = project.resume()
    assert resumed.code == 0, resumed.err
    assert "mind the negative numbers" in json.dumps(project.requests[-1])


def test_a_wider_boundary_builds_on_the_narrower_verdicts(make_project: MakeProject) -> None:
    holds = [{"id": "AC-1", "holds": "yes", "evidence": "one.py:1"}]
    project = make_project(
        [plan(tasks=("One", "Two")), build("calc-t1", "one"), build("calc-t2", "two")],
        oracle=[verdict(criteria=holds, summary="One adds."), verdict(), verdict()],
    )
    project.build_module()
    task, _, module = map(opening, project.oracle_requests)
    assert "Why the task exists: It was planned" in task
    assert 'calc-t1 "One": passed (high): One adds.\n  AC-1: yes: one.py:1' in module
    assert "     1 +def add(a, b):" in task.partition("# Diff since the work began")[2]
    assert '"one.py": ' in module.partition("# Not shown")[2]  # an accepted verdict saw it; the tools show it
    assert "def add" not in module
    assert '"test_one.py": TestOne.test_add' in module or "test_add" in module.partition("# Tests by file")[2]
