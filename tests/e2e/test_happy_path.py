"""From a specification to a built, verified and committed module."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.project import build, plan


def test_a_module_of_one_task_is_built_in_three_requests(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()

    at_the_gate = project.spawned("run", "calc")
    assert at_the_gate.code == 3
    assert at_the_gate.last_line == "next: lopen approve calc --run"

    assert project.spawned("approve", "calc", "--yes").code == 0
    ran = project.spawned("run", "calc")

    assert ran.code == 0, ran.err
    assert len(project.requests) == 2
    assert len(project.oracle_requests) == 1
    assert project.subjects("lopen/calc") == [
        "Begin",
        "docs(calc): approve specification",
        "feat(calc): complete Write it in core",
    ]
    assert project.git("log", "-1", "--format=%b", "lopen/calc").splitlines() == [
        f"Lopen-Session: {project.status()['session']}",
        "Lopen-Task: calc-t1",
        "Lopen-Verdict: passed (high)",
    ]
    assert "lopen merge calc" in ran.out
    assert project.git("status", "--porcelain").split() == ["??", "specs/"]
    assert project.status()["status"] == "complete"
