"""`run --dry-run` says what a build may cost and where it would begin, and leaves everything as it is."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.endpoint import status
from tests.project import build, plan


def test_a_dry_run_says_cost_limits_and_step_and_changes_nothing(make_project: MakeProject) -> None:
    project = make_project([plan(), status(400, "no more")])
    project.specify()
    waits = project.lopen("run", "calc", "--dry-run", "--max-cost", "3")
    assert waits.code == 0, waits.err
    assert "the whole build may cost $" in waits.out
    assert "limits: cost $3.00, session 2,000,000 tokens" in waits.out
    assert "it would wait for your approval; nothing was sent" in waits.out
    assert waits.last_line == "next: lopen approve calc --run"
    assert project.lopen("session", "list", "--json").named("session") == []

    assert project.lopen("approve", "calc", "--yes").code == 0
    assert project.lopen("plan", "calc").code == 0
    before, asked = project.git("for-each-ref"), len(project.requests)
    shown = project.lopen("run", "calc", "--dry-run", "--json")
    [line] = shown.named("dry_run")
    assert (line["step"], line["waits_for_approval"], line["command"]) == (
        "iterate_through_tasks",
        False,
        "lopen run calc",
    )
    anew = project.lopen("run", "calc", "--new", "--dry-run")
    assert anew.last_line == "next: lopen run calc --new", anew.out
    [estimate] = shown.named("estimate")
    assert estimate["tokens"][0] < estimate["tokens"][1]
    assert (project.git("for-each-ref"), len(project.requests)) == (before, asked)


def test_the_estimate_learns_from_the_project_s_finished_builds(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.run_module()
    used = project.status()["tokens"]
    project.specify("other", project.read("specs/calc/SPECIFICATION.md").replace("calc", "other"))
    told = project.lopen("run", "other", "--dry-run").out
    assert (
        f"({int(used * 0.7**3):,} to {int(used * 1.5**3):,} tokens): from 1 finished build of this project"
        in told
    )

    free = make_project([plan(), build("calc-t1")], name="free")
    free.run_module("--model", "a-model-without-a-price")
    free.specify("other")
    assert "from the specification's size" in free.lopen("run", "other", "--dry-run").out, (
        "no cost is no estimate"
    )
