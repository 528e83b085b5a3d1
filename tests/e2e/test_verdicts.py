"""Nothing is complete on a model's word: evidence, the oracle, what verify commands leave, boundaries.

See docs/reference/completion.md.
"""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, status, text, tool_results, tools, verdict
from tests.project import UNITTEST, build, code, component, plan, specification, verified

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
        plan(tasks=("Write it", "Mend it")),
        text("I have completed the task; all tests pass and everything is verified."),
        tools(*code(), complete("calc-t1")),
        tools(*verified("calc-t1")[:2], write("more.py"), complete("calc-t1")),
        tools(*verified("calc-t1")),
        tools(*code(value="b + a"), *verified("calc-t2")[:2], judge("calc-t1"), complete("calc-t1")),
        tools(*code(value="b + a"), complete("calc-t2")),  # the same content again changes nothing
    ]
    project = make_project(script)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    requests = project.endpoint.requests
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
    assert project.git("show", "--stat", "--format=", "HEAD~1").count("|") == 3


def test_a_verdict_counts_only_if_it_passes_without_errors_and_doubts(make_project: MakeProject) -> None:
    oracle = [
        verdict(passed=False, summary="It does not add."),
        verdict(findings=[WRONG]),
        verdict(confidence="low"),
        verdict(confidence="medium", findings=[{"severity": "warning", "message": "no type hints"}]),
    ]
    first, *tries = [tools(*code(value=f"a + b + {n} - {n}"), *verified("calc-t1")[:2]) for n in range(4)]
    project = make_project([plan(), first, *tries, tools(complete("calc-t1"))], oracle=oracle)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    judged = [last_result(r, "verify_task_completion") for r in project.endpoint.requests[2:]]
    assert [j.data["passed"] for j in judged] == [False, False, False, True]
    assert not any(j.is_error for j in judged)  # the tool worked; what it says is the verdict
    assert judged[0].data["summary"] == "It does not add."
    assert judged[1].data["findings"] == [WRONG]
    assert "low" in judged[2].data["findings"][0]["message"]
    assert project.git("log", "-1", "--format=%b").endswith("Lopen-Verdict: passed (medium)")


def test_an_unreadable_verdict_is_asked_for_once_more_and_then_counts_as_failed(
    make_project: MakeProject,
) -> None:
    oracle = [text("Looks good to me."), tools(("submit_verdict", {"passed": "yes"})), verdict()]
    script = [plan(), build("calc-t1"), tools(judge("calc-t1"), complete("calc-t1"))]
    project = make_project(script, oracle=oracle)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    asked = project.endpoint.oracle_requests
    assert len(asked) == 3
    assert "could not be read" in json.dumps(asked[1]["messages"])
    unread = last_result(project.endpoint.requests[2], "verify_task_completion")
    assert unread.data["passed"] is False
    assert unread.data["findings"][0]["severity"] == "error"
    assert "could not be read" not in json.dumps(asked[2]["messages"])


def test_an_oracle_that_cannot_take_the_evidence_fails_the_verdict(make_project: MakeProject) -> None:
    too_long = status(400, "prompt is too long: 300000 tokens > 200000 maximum")
    script = [plan(), build("calc-t1"), tools(judge("calc-t1"), complete("calc-t1"))]
    project = make_project(script, oracle=[too_long, too_long, verdict()])
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    unread = last_result(project.endpoint.requests[2], "verify_task_completion")
    assert unread.data["passed"] is False
    assert "too large" in unread.data["findings"][0]["message"]


def test_the_same_evidence_is_asked_about_once(make_project: MakeProject) -> None:
    script = [
        plan(),
        tools(*code(), ("verify_tests", {}), judge("calc-t1"), judge("calc-t1")),
        tools(write("calc.py", "def add(a, b):\n    return b + a\n"), ("verify_tests", {}), judge("calc-t1")),
        tools(*code(), *verified("calc-t1")),
        tools(
            write("calc.py", "def add(a, b):\n    return b + a\n"),
            *verified("calc-t1")[:2],
            ("verify_component_completion", {"component": "core"}),
            ("verify_module_completion", {}),
            complete("calc-t1"),
        ),
    ]
    project = make_project(script, oracle=[verdict(passed=False), verdict()])
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    assert len(project.endpoint.oracle_requests) == 2
    told = [(v["passed"], v["cached"]) for v in ran.named("verdict_given")]
    assert told[:4] == [(False, False), (False, True), (True, False), (False, True)]
    assert told[4:] == [(True, True)] * (len(told) - 4)


def test_a_failing_command_fails_the_verdict_without_the_oracle(make_project: MakeProject) -> None:
    script = [
        plan(),
        tools(write("calc.py", "def add(a, b):\n    return 0\n"), *verified("calc-t1")),
        tools(*code(value="a - b"), *verified("calc-t1")),
        build("calc-t1"),
    ]
    project = make_project(script)
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    requests = project.endpoint.requests
    empty = last_result(requests[2], "verify_tests")
    assert (empty.data["ok"], empty.data["passed"]) == (True, False)
    assert "write at least one test" in empty.data["hint"]
    failing = last_result(requests[3], "verify_tests").data
    assert (failing["passed"], failing["exit_code"], failing["command"]) == (False, 1, UNITTEST)
    assert "AssertionError" in failing["output"]
    for request in requests[2:]:
        judged = last_result(request, "verify_task_completion").data
        assert judged["passed"] is False
        assert "verify_tests failed" in judged["findings"][0]["message"]
    assert len(project.endpoint.oracle_requests) == 1


def test_tests_taken_away_or_weakened_fail_whatever_the_oracle_says(make_project: MakeProject) -> None:
    old = "import unittest\n\n\nclass TestOld(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1 + 1, 2)\n"
    skipped = old.replace("    def test_one", '    @unittest.skip("later")\n    def test_one')
    weak = old.replace("self.assertEqual(1 + 1, 2)", "self.assertTrue(True)")
    script = [
        plan(),
        tools(*code(), ("run_command", {"command": "rm test_old.py"}), *verified("calc-t1")),
        tools(write("test_old.py", skipped), *verified("calc-t1")[:2]),
        tools(write("test_old.py", weak), *verified("calc-t1")[:2]),
        tools(write("test_old.py", old), *verified("calc-t1")),
    ]
    project = make_project(script)
    project.write("test_old.py", old)
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "Test the old part")
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    for request in project.endpoint.requests[2:]:
        judged = last_result(request, "verify_task_completion").data
        assert judged["passed"] is False
        assert judged["findings"][0]["severity"] == "error"
        assert judged["findings"][0]["path"] == "test_old.py"
    assert last_result(project.endpoint.requests[2], "update_task_status").is_error
    assert "test_old.py" in json.dumps(project.endpoint.oracle_requests[0])
    assert project.git("diff", "--stat", "HEAD~2", "--", "test_old.py") == ""


def test_what_a_verify_command_leaves_behind_is_not_committed(make_project: MakeProject) -> None:
    command = f"{UNITTEST} && date +%N > build.log && echo more >> README.md && echo locked > uv.lock"
    script = [
        plan(),
        tools(*code(), ("verify_tests", {}), judge("calc-t1")),
        tools(complete("calc-t1")),
    ]
    project = make_project(script)
    project.specify(text=specification(commands={"verify-tests": command}))

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    result = tool_results(project.endpoint.requests[2])[2].data
    assert result["passed"] is True
    assert result["put_back"] == ["README.md"]
    assert project.read("README.md") == "A project.\n"
    assert any("README.md" in n["message"] for n in ran.named("notice"))
    files = project.git("ls-files").splitlines()
    assert "uv.lock" in files
    assert "build.log" not in files
    assert (project.root / "build.log").exists()


def test_a_verify_commit_that_fails_keeps_the_commit_back(make_project: MakeProject) -> None:
    commands = {"verify-commit": "test -f NOTES.txt", "verify-lint": "test -f calc.py"}
    script = [plan(), build("calc-t1"), tools(write("NOTES.txt"), *verified("calc-t1"))]
    project = make_project(script)
    project.specify(text=specification(commands=commands))

    ran = project.drive()

    assert ran.code == 0, ran.err
    assert project.endpoint is not None
    refused = last_result(project.endpoint.requests[2])
    assert refused.is_error
    assert "verify-commit failed" in refused.data["error"]
    assert len(project.subjects()) == 3


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
        verdict(passed=False, summary="Not yet.", findings=[WRONG]),
        *[verdict()] * 3,
    ]
    project = make_project(script, oracle=oracle)
    project.specify(text=specification(criteria=("it adds", "it reports")))

    ran = project.drive()

    assert ran.code == 0, ran.err
    scopes = [(v["scope"], v["subject"], v["passed"]) for v in ran.named("verdict_given") if not v["cached"]]
    assert scopes[:3] == [
        ("component", "core", True),
        ("component", "report", True),
        ("module", "calc", False),
    ]
    assert project.subjects()[-1] == "feat(calc): complete Mend what the module verification found in core"
    assert project.endpoint is not None
    prompt = json.dumps(project.endpoint.requests[4]["system"])
    assert "add is wrong for negative numbers" in prompt
    added = [t for t in ran.named("task_changed") if t["task"] == "calc-t3"]
    assert (added[0]["state"], added[0]["component"]) == ("pending", "core")


def test_three_failed_boundaries_in_a_row_ask_for_confirmation(make_project: MakeProject) -> None:
    names = ("One", "Two", "Three")
    tries = [tools(*code(value=f"a + b + {n} - {n}"), *verified(f"calc-t{n}")) for n in range(1, 7)]
    failing = verdict(passed=False, summary="Not yet.")
    passing = verdict()
    oracle = [passing, passing, passing, failing, passing, failing, passing, failing, passing, passing]
    project = make_project([plan(tasks=names), *tries], oracle=oracle)
    project.specify()

    ran = project.drive()

    assert ran.code == 3, ran.err
    paused = ran.named("session_paused")[0]
    assert paused["kind"] == "confirmation"
    assert "3 boundary verifications failed" in paused["message"]
    assert ran.last_line == f"next: lopen confirm {paused['session']}"
    assert project.resume().code == 3  # nothing but the confirmation lets it go on
    confirmed = project.lopen("confirm", paused["session"], "--note", "mind the negative numbers")
    assert confirmed.code == 0, confirmed.err
    resumed = project.resume()
    assert resumed.code == 0, resumed.err
    assert project.endpoint is not None
    assert "mind the negative numbers" in json.dumps(project.endpoint.requests[-1])


def test_a_file_that_git_ignores_is_in_no_commit_and_everybody_is_told(make_project: MakeProject) -> None:
    project = make_project([plan(), tools(*code(), write("data/rates.csv"), *verified("calc-t1"))])
    project.specify()
    (project.root / ".gitignore").write_text("data/\n", "utf-8")
    project.git("add", "-A")
    project.git("commit", "-qm", "Ignore data")

    ran = project.drive()

    assert ran.code == 0, ran.err
    (told,) = [n["message"] for n in ran.named("notice") if "in no commit" in n["message"]]
    assert "data/rates.csv" in told
    assert project.endpoint is not None
    assert "data/rates.csv" in json.dumps(project.endpoint.oracle_requests[-1])
    assert "data/rates.csv" not in project.git("ls-tree", "-r", "--name-only", "lopen/calc")
