"""Each verify command is run once before the first request that is paid for."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.project import build, plan, specification
from tests.ran import SHELL_PYTHON


def test_a_command_that_cannot_start_ends_the_run_before_a_request_is_paid(make_project: MakeProject) -> None:
    said = "No module named nosuchmod"
    project = make_project([plan(), build("calc-t1")])
    project.specify(text=specification(commands={"verify-lint": f"{SHELL_PYTHON} -m nosuchmod"}))
    ran = project.lopen("approve", "calc", "--yes", "--run")
    assert ran.code == 1
    assert ran.err.startswith("lopen: verify-lint cannot start: ")
    assert said in ran.err.splitlines()[0]
    assert project.requests == []
    assert said in project.lopen("status").out

    project.specify()
    assert project.lopen("status").last_line == "next: lopen approve calc --run"
    project.approve_module()
    assert project.lopen("resume").code == 0


def test_a_test_command_without_tests_yet_stops_nothing_and_is_tried_once(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    counted = f"echo tried >> {project.root.parent}/tried; {SHELL_PYTHON} -m unittest -q"
    project.specify(text=specification(commands={"verify-tests": counted, "verify-lint": "sh lint.sh"}))
    ran = project.lopen("approve", "calc", "--yes")
    assert ran.code == 0
    ran = project.lopen("plan", "calc", "--json")
    assert ran.code == 0, ran.err
    tried = project.root.parent / "tried"
    assert tried.read_text() == "tried\n"
    assert ran.named("verification_ran") == []
