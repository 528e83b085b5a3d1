"""What failed can be read: `lopen show`, `lopen diff`, `lopen log -v`, `lopen status` and the pause itself."""

from __future__ import annotations

import re

from tests.e2e.conftest import MakeProject
from tests.e2e.test_memory import archive
from tests.endpoint import tools, verdict
from tests.project import build, code, plan

MISSING = "No module named 'nosuchmod'"
BROKEN = "import unittest\n\nimport nosuchmod\n"
GIVE_UP = tools(("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "cannot"}))


def test_the_output_of_a_failed_verification_is_shown_wherever_a_person_looks(
    make_project: MakeProject,
) -> None:
    secret = "q7Zk2mXw9PbR4tLs8Vn3"
    broken = f"print('{secret}')\n{BROKEN}"
    test = ("write_file", {"path": "test_calc.py", "content": broken})
    failing = tools(test, ("verify_tests", {}), ("run_command", {"command": "exit 3"}))
    project = make_project([plan(), failing, GIVE_UP, GIVE_UP, GIVE_UP], MY_API_KEY=secret)
    project.specify()
    ran = project.lopen("approve", "calc", "--yes", "--run")
    assert ran.code == 3, ran.err
    assert MISSING in ran.out.partition("paused: ")[2]

    assert MISSING in project.lopen("status").out
    assert MISSING in project.status()["failed_verification"]["output"]
    assert MISSING not in project.lopen("log").out.partition("paused: ")[0]
    log = project.lopen("log", "-v").out
    assert MISSING in log.partition("paused: ")[0]
    assert re.search(r"run_command exit 3: failed, [\d.]+ s: exit code 3", log)
    number = log.partition("[verification-")[2].partition("]")[0]
    call = next(line for line in log.splitlines() if "verify_tests:" in line).partition("[call-")[2]
    for wanted in ("calc-t1", f"verification-{number}", f"call-{call.partition(']')[0]}"):
        shown = project.lopen("show", wanted)
        assert shown.code == 0, shown.err
        assert MISSING in shown.out
        assert secret not in shown.out + str(project.lopen("show", wanted, "--json").events)
    assert secret not in log
    assert project.lopen("show", "calc-t9").code == 1


def test_a_task_is_shown_with_its_criteria_verdict_cost_and_change(make_project: MakeProject) -> None:
    judged = verdict(criteria=[{"id": "AC-1", "holds": "yes", "evidence": "test_add"}])
    project = make_project([plan(), build("calc-t1")], oracle=[judged])
    project.build_module()
    for archived in (False, True):
        if archived:
            archive(project, project.status()["session"])
        task = project.lopen("show", "calc-t1", "--json").named("task")[0]
        (criterion,) = task["criteria"]
        assert criterion == {
            "id": "AC-1",
            "text": "add(1, 2) is 3",
            "holds": "yes",
            "evidence": "test_add",
            "state": "met",
        }
        assert task["verdict"]["passed"]
        assert task["tokens"] > 0
        assert task["commit"] == project.git("rev-parse", "lopen/calc")
        assert [v["tool"] for v in task["verifications"]] == ["verify_tests"]
        assert "Ran 1 test" in task["verifications"][0]["output"]
        assert "+def add(a, b):" in task["diff"]
        shown = project.lopen("show", "calc-t1").out
        for part in ("AC-1 met", "verdict-", "+def add(a, b):", "tokens, $", "Write it, with its tests."):
            assert part in shown
        assert "passed" in project.lopen("show", "calc").out  # the module's verdict
    assert "+def add(a, b):" in project.lopen("diff", "calc-t1").out


def test_the_change_of_a_task_that_is_not_committed_is_shown(make_project: MakeProject) -> None:
    project = make_project([plan(), tools(*code()), GIVE_UP, GIVE_UP, GIVE_UP])
    project.specify()
    project.lopen("approve", "calc", "--yes", "--run")
    for arguments in (("diff", "calc-t1"), ("diff",), ("show", "calc-t1")):
        assert "+def add(a, b):" in project.lopen(*arguments).out
    assert not (project.root / "calc.py").exists()
