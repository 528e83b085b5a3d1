"""Tests that a change removes: an error of lopen's, unless a person allowed it or the specification changed."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools, verdict
from tests.project import Project, build, code, component, plan, specification, verified

OLD = "import unittest\n\n\nclass TestOld(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(1 + 1, 2)\n"
GONE = "run no longer: TestOld::test_old"
REMOVE = ("run_command", {"command": "rm test_old.py"})


def begin(project: Project) -> None:
    project.write("test_old.py", OLD)
    project.commit("An old test")
    project.specify()


@pytest.mark.parametrize("allowed", [False, True])
def test_a_person_at_the_gate_lets_tests_be_removed(make_project: MakeProject, allowed: bool) -> None:
    back = tools(("write_file", {"path": "test_old.py", "content": OLD}), *verified("calc-t1"))
    project = make_project([plan(), tools(REMOVE, *code(), *verified("calc-t1")), back])
    begin(project)
    option = ["--allow-test-removal", "test_*.py"] if allowed else []
    approved = project.lopen("approve", "calc", "--yes", *option)
    assert ("tests may be removed from: test_*.py" in approved.out) is allowed

    ran = project.lopen("run", "calc")

    assert ran.code == 0, ran.err
    asked = "\n".join(str(r["messages"]) for r in project.oracle_requests)
    assert (f"{GONE}. A person allowed it" in asked) is allowed
    assert len(project.requests) == (2 if allowed else 3)
    if not allowed:
        judged = last_result(project.requests[2], "verify_task_completion").data
        assert (judged["passed"], judged["findings"][0]["severity"]) == (False, "error")
        assert f"{GONE}; have the command run them again" in judged["findings"][0]["message"]
        assert "lopen approve calc --allow-test-removal 'test_old.py'" in judged["findings"][0]["message"]
    assert project.holds("test_old.py") is not allowed


def test_where_the_specification_changed_the_judge_decides(make_project: MakeProject) -> None:
    refused = verdict(passed=False, findings=[{"severity": "error", "message": "that test still holds"}])
    removed = tools(REMOVE, *code("sub"), *verified("calc-t2"))
    back = tools(("write_file", {"path": "test_old.py", "content": OLD}), *verified("calc-t2"))
    project = make_project(
        [plan(), build("calc-t1"), plan(component("minus", "AC-2")), removed, back],
        oracle=[verdict(), refused, verdict()],
    )
    begin(project)
    assert project.drive().code == 0
    assert project.lopen("merge", "calc").code == 0
    project.specify(text=specification(criteria=("sub(1, 2) is -1",)))

    ran = project.drive()

    assert ran.code == 0, ran.err
    asked = str(project.oracle_requests[1]["messages"])
    assert f"{GONE}. The specification changed since they were written (Acceptance Criteria)" in asked
    judged = last_result(project.requests[4], "verify_task_completion").data
    assert [f["message"] for f in judged["findings"] if f["severity"] == "error"] == ["that test still holds"]
