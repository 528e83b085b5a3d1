"""Nothing is complete on a model's word: evidence, the oracle, what verify commands leave, boundaries.

See docs/reference/completion.md.
"""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, text, tool_results, tools, verdict
from tests.project import UNITTEST, build, code, plan, specification, verified

Call = tuple[str, dict[str, Any]]
WRONG = {"severity": "error", "message": "add is wrong for negative numbers", "criterion": "AC-1"}


def complete(task_id: str) -> Call:
    return "update_task_status", {"task_id": task_id, "status": "complete"}


def write(path: str, content: str = "x\n") -> Call:
    return "write_file", {"path": path, "content": content}


def judge(task_id: str) -> Call:
    return "verify_task_completion", {"task_id": task_id}


def test_a_lying_model_completes_nothing(make_project: MakeProject) -> None:
    script = [
        plan(tasks=("Write it", "Fix it")),
        text("I have completed the task; all tests pass and everything is verified."),
        tools(*code(), complete("calc-t1")),
        tools(*verified("calc-t1")[:2], write("more.py"), complete("calc-t1")),
        tools(*verified("calc-t1")),
        tools(*code(value="b + a"), *verified("calc-t2")[:2], judge("calc-t1"), complete("calc-t1")),
        tools(*code(value="b + a"), complete("calc-t2")),  # the same content again changes nothing
    ]
    project = make_project(script)
    project.build_module()
    requests = project.requests
    claimed = last_result(requests[3])
    assert claimed.is_error
    assert claimed.data["missing"] == ["verify_tests", "verify_task_completion"]
    stale = last_result(requests[4])
    assert stale.is_error
    assert "changed since verify_task_completion, verify_tests passed" in stale.data["hint"]
    for other in tool_results(requests[6])[-2:]:
        assert other.is_error
        assert "calc-t2" in other.data["hint"]
    assert len(project.subjects()) == 4
    assert project.git("show", "--stat", "--format=", "lopen/calc~1").count("|") == 3


def test_a_verdict_counts_only_if_it_passes_without_errors_and_doubts(make_project: MakeProject) -> None:
    oracle = [
        verdict(passed=False, summary="It does not add."),
        verdict(findings=[WRONG]),
        verdict(criteria=[{"id": "AC-1", "holds": "no", "evidence": "calc.py:2 subtracts"}]),
        verdict(confidence="medium", findings=[{"severity": "warning", "message": "no type hints"}]),
    ]
    first, *tries = [tools(*code(value=f"a + b + {n} - {n}"), *verified("calc-t1")[:2]) for n in range(4)]
    script = [plan(), first, *tries, tools(complete("calc-t1"))]
    project = make_project(script, oracle=oracle, LOPEN_WORKFLOW__FAILURE_THRESHOLD="4")
    project.build_module()
    judged = [last_result(r, "verify_task_completion") for r in project.requests[2:]]
    assert [j.data["passed"] for j in judged] == [False, False, False, True]
    assert not any(j.is_error for j in judged)  # the tool worked; what it says is the verdict
    assert judged[0].data["summary"] == "It does not add."
    assert judged[1].data["findings"] == [WRONG]
    assert judged[2].data["findings"] == [
        {"severity": "error", "message": "AC-1 does not hold: calc.py:2 subtracts", "criterion": "AC-1"}
    ]
    assert project.git("log", "-1", "--format=%b", "lopen/calc").endswith("Lopen-Verdict: passed (medium)")


def test_what_neither_model_can_tell_is_decided_by_a_person(make_project: MakeProject) -> None:
    doubt = verdict(confidence="low", summary="The rounding cannot be told from this.")
    project = make_project([plan(), build("calc-t1")], oracle=[doubt, doubt])
    ran = project.build_module(code=3)
    (paused,) = ran.named("session_paused")
    assert paused["kind"] == "confirmation"
    assert "could not tell" in paused["message"]
    assert "The rounding cannot be told" in paused["message"]
    assert ran.last_line == f"next: lopen confirm {paused['session']}"
    assert [r["model"] for r in project.oracle_requests] == ["claude-haiku-5-5", "claude-sonnet-5-5"]
    confirmed = project.lopen("confirm", paused["session"], "--note", "I computed it by hand")
    assert confirmed.code == 0, confirmed.err
    assert project.ended_at("before:lopen.git.repository:Repository.commit", "resume").code < 0

    resumed = project.resume()

    assert resumed.code == 0, resumed.err
    asked = (len(project.requests), len(project.oracle_requests))
    assert asked == (2, 2), "the person decided: lopen completes the task, and asks nobody again"
    assert len(project.subjects()) == 3
    (complete,) = resumed.named("session_complete")
    assert "I computed it by hand" in complete["accepted"][0]
    assert complete["tasks"] == 1, "a verdict that could not tell never becomes a task"
    assert "I computed it by hand" in project.read(".lopen/modules/calc/plan.md")


def test_work_that_changed_after_a_person_accepted_it_is_verified_and_judged_again(
    make_project: MakeProject,
) -> None:
    doubt = verdict(confidence="low")
    script = [plan(), build("calc-t1"), tools(*verified("calc-t1"))]
    project = make_project(script, oracle=[doubt, doubt, verdict()])
    project.build_module(code=3)
    assert project.lopen("confirm", "calc").code == 0
    (project.clone() / "calc.py").write_text("def add(a, b):\n    return b + a\n", "utf-8")

    assert project.resume().code == 0

    assert (len(project.requests), len(project.oracle_requests)) == (3, 3)


def test_the_same_evidence_is_asked_about_once(make_project: MakeProject) -> None:
    script = [
        plan(),
        tools(*code(), ("verify_tests", {}), judge("calc-t1")),
        tools(judge("calc-t1")),
        tools(write("calc.py", "def add(a, b):\n    return b + a\n"), ("verify_tests", {}), judge("calc-t1")),
        tools(*code(), *verified("calc-t1")),
        tools(
            write("calc.py", "def add(a, b):\n    return b + a\n"),
            *verified("calc-t1"),
        ),
    ]
    project = make_project(script, oracle=[verdict(passed=False), verdict()])
    ran = project.build_module()
    assert len(project.oracle_requests) == 2
    told = [(v["passed"], v["cached"]) for v in ran.named("verdict_given")]
    assert told[:4] == [(False, False), (False, True), (True, False), (False, True)]
    assert told[4:] == [(True, True)] * (len(told) - 4)


def test_a_failing_command_fails_the_verdict_without_the_oracle(make_project: MakeProject) -> None:
    script = [
        plan(),
        tools(write("calc.py", "def add(a, b):\n    return 0\n"), *verified("calc-t1")),
        tools(*code(value="a - b"), ("run_command", {"command": "false"}), ("verify_tests", {})),
        tools(("verify_tests", {})),
        tools(judge("calc-t1")),
        build("calc-t1"),
    ]
    project = make_project(script)
    project.build_module()
    requests = project.requests
    empty = last_result(requests[2], "verify_tests")
    assert (empty.data["ok"], empty.data["passed"]) == (True, False)
    assert "write at least one test" in empty.data["hint"]
    assert "passed" in last_result(requests[3], "verify_tests").data, "only the judge rests on the command"
    failing = last_result(requests[4], "verify_tests").data
    assert (failing["passed"], failing["exit_code"], failing["command"]) == (False, 1, UNITTEST)
    assert "AssertionError" in failing["output"]
    for tool in ("verify_task_completion", "update_task_status"):
        rested = last_result(requests[2], tool)
        assert rested.is_error
        assert rested.data["error"] == "not run: verify_tests failed in this turn"
    judged = last_result(requests[5], "verify_task_completion").data
    assert judged["passed"] is False
    assert "verify_tests failed" in judged["findings"][0]["message"]
    assert len(project.oracle_requests) == 1


def test_a_weakened_test_is_a_question_and_fails_where_it_is_not_justified(make_project: MakeProject) -> None:
    old = "import unittest\n\n\nclass TestOld(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1 + 1, 2)\n"
    weak = old.replace("self.assertEqual(1 + 1, 2)", "self.assertTrue(True)")
    unjust = {
        "passed": True,
        "confidence": "high",
        "summary": "All criteria hold.",
        "findings": [],
        "criteria": [{"id": "AC-1", "holds": "yes", "evidence": "test_calc.py:7"}],
        "questions": [{"id": "Q1", "answer": "not_justified", "because": "nothing asks for it"}],
    }
    script = [
        plan(),
        tools(*code(), write("test_old.py", weak), *verified("calc-t1")),
        tools(write("test_old.py", old), *verified("calc-t1")),
    ]
    project = make_project(script, oracle=[tools(("submit_verdict", unjust)), verdict()])
    project.write("test_old.py", old)
    project.commit("Test the old part")
    project.build_module()
    judged = last_result(project.requests[2], "verify_task_completion").data
    assert judged["passed"] is False
    assert "nothing asks for it" in judged["findings"][0]["message"]
    assert last_result(project.requests[2], "update_task_status").is_error
    assert project.git("diff", "--stat", "main", "lopen/calc", "--", "test_old.py") == ""


def test_what_a_verify_command_leaves_behind_is_not_committed(make_project: MakeProject) -> None:
    command = f"{UNITTEST} && date +%N > build.log && echo more >> README.md && echo locked > uv.lock"
    script = [
        plan(),
        tools(*code(), ("verify_tests", {}), judge("calc-t1")),
        tools(complete("calc-t1")),
    ]
    project = make_project(script)
    project.build_module(text=specification(commands={"verify-tests": command}))
    result = tool_results(project.requests[2])[2].data
    assert result["passed"] is True
    assert result["put_back"] == ["README.md"]
    assert "changed this file while it ran" in json.dumps(project.oracle_requests[0])
    assert project.built("README.md") == "A project.\n"
    assert project.holds("uv.lock")
    assert not project.holds("build.log")
    assert not (project.clone() / "build.log").exists()  # it was made in the clean room


def test_a_module_is_complete_only_with_a_yes_for_every_criterion(make_project: MakeProject) -> None:
    """A judge that passes everything and answers nothing: asked again, then the second model, then a person."""
    silent = verdict(criteria=[{"id": "AC-9", "holds": "yes"}])
    open_one = verdict(criteria=[{"id": "AC-1", "holds": "cannot_tell", "evidence": "no test calls it"}])
    project = make_project([plan(), build("calc-t1")], oracle=[silent, silent, open_one])
    ran = project.build_module(code=3)
    assert [r["model"] for r in project.oracle_requests][-1] != project.oracle_requests[0]["model"]
    assert "does not answer AC-1" in json.dumps(project.oracle_requests[1])
    [paused] = ran.named("session_paused")
    assert (
        "it could not be told whether AC-1 holds: no test calls it; the judge's summary: "
        in paused["message"]
    )
    status, shown = (project.lopen(word, "calc").out for word in ("status", "show"))
    assert "criteria 0/1" in status
    for screen in (status, shown):
        assert screen.count("it could not be told whether AC-1") == screen.count("the judge's summary") == 1
    assert project.lopen("confirm", paused["session"]).code == 0
    resumed = project.resume()
    assert resumed.code == 0, resumed.err
    printed = project.lopen("pr", "--print", "calc").out
    assert "- [ ] **AC-1**" in printed, "a person's acceptance is no yes of the judge"
    assert "accepted by a person where the judge was not sure: " in printed
    assert "look at it" not in printed


def test_what_a_task_left_open_is_asked_of_the_module_with_what_was_missing(
    make_project: MakeProject,
) -> None:
    open_one = verdict(criteria=[{"id": "AC-1", "holds": "cannot_tell", "evidence": "only half is there"}])
    project = make_project(
        [plan(tasks=("One", "Two")), build("calc-t1"), tools(*code("two"), *verified("calc-t2"))],
        oracle=[open_one, verdict()],
    )
    project.build_module()
    assert "AC-1: calc-t1 could not tell: only half is there" in json.dumps(project.oracle_requests[-1])


def test_a_failure_is_told_once_as_long_as_nothing_changes(make_project: MakeProject) -> None:
    lint: Call = ("verify_lint", {})
    judged = judge("calc-t1")
    again = [tools(lint), tools(judged), tools(judged)]
    script = [plan(), tools(*code(), lint), *again, tools(write("ready"), lint), tools(*verified("calc-t1"))]
    project = make_project(script)
    ran = project.build_module(specification(commands={"verify-lint": "`echo all-of-it; test -e ready`"}))
    first, repeated = (last_result(project.requests[n], "verify_lint") for n in (2, 3))
    assert "all-of-it" in first.data["output"]
    assert "nothing changed since verify_lint failed with exit code 1" in repeated.data["error"]
    assert "output" not in repeated.data
    rejected, shorter = (last_result(project.requests[n], "verify_task_completion") for n in (4, 5))
    assert rejected.data["findings"]
    assert "nothing changed since verify_task_completion rejected" in shorter.data["error"]
    assert not project.oracle_requests[1:]
    assert [v["tool"] for v in ran.named("verification_ran")].count("verify_lint") == 2
