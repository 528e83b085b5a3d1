"""What lopen keeps: lost, damaged, newer, full; and the commands that show it."""

from __future__ import annotations

import resource
import sqlite3
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools, verdict
from tests.fake_api import Answer
from tests.project import (
    Meanwhile,
    build,
    code,
    component,
    plan,
    specification,
    verified,
)
from tests.ran import Ran

DATABASE = ".lopen/state.db"


def second() -> Answer:
    return tools(*code("other"), *verified("calc-t2"))


# A database that is lost


def test_a_database_deleted_during_a_run_is_told(make_project: MakeProject) -> None:
    def delete(_: object) -> Answer:
        for file in (project.root / ".lopen").glob("state.db*"):
            file.unlink()
        return verdict()

    project = make_project([plan(), build("calc-t1")], oracle=delete)
    ran = project.run_module(code=1)
    assert "was deleted or replaced while lopen ran" in ran.err
    assert "feat(calc): complete Write it in core" in project.git("log", "lopen/calc")


def test_a_damaged_database_is_kept_aside_and_the_next_run_plans_again(make_project: MakeProject) -> None:
    again = [plan(tasks=("Say it",)), tools(*code("other"), *verified("calc-t1"))]
    project = make_project([plan(tasks=("Add", "Say it")), build("calc-t1"), *again])
    project.run_module("--max-iterations", "2", code=3)
    file = project.root / DATABASE
    content = file.read_bytes()
    changed = content[:8192] + b"\xff" * 16384 + content[24576:]
    file.write_bytes(changed)

    told = project.lopen("status")

    assert told.code == 0
    assert "moved to .lopen/corrupted/" in told.err
    [kept] = (project.root / ".lopen/corrupted").glob("*state.db")
    assert kept.read_bytes() == changed
    on = project.approved_run()
    assert on.code == 0, on.out + on.err
    assert project.subjects().count("feat(calc): complete Add in core") == 1


def test_a_database_of_a_newer_lopen_is_left_as_it_is(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()
    assert project.lopen("run", "calc").code == 3
    with sqlite3.connect(project.root / DATABASE) as connection:
        connection.execute("PRAGMA user_version=9999")
    connection.close()
    before = (project.root / DATABASE).read_bytes()

    for arguments in (("run", "calc"), ("status",), ("approve", "calc"), ("budget", "show"), ("alerts",)):
        ran = project.lopen(*arguments)
        assert ran.code == 1
        assert "newer lopen" in ran.err
        assert "update lopen" in ran.err

    assert (project.root / DATABASE).read_bytes() == before
    assert not (project.root / ".lopen/corrupted").exists()


# A disk that takes nothing


def test_nothing_is_paid_for_that_cannot_be_saved(make_project: MakeProject) -> None:
    meanwhile = Meanwhile()

    def full(_: dict[str, Any]) -> Answer:
        resource.prlimit(meanwhile.pid, resource.RLIMIT_FSIZE, (0, 0))
        return plan()

    project = make_project([full, plan(), build("calc-t1")])
    project.approve_module()

    ran = meanwhile.run(project, "run", "calc")

    assert ran.code == 3, ran.out + ran.err
    assert len(project.requests) == 1
    assert str(project.root / ".lopen") in ran.err
    assert ran.last_line == "next: lopen resume"
    assert "Traceback" not in ran.err
    on = project.lopen("resume")
    assert on.code == 0, on.out + on.err
    assert len(project.subjects()) == 3


# Looking


def test_plan_build_and_the_commands_that_look(make_project: MakeProject) -> None:
    followed: list[Ran] = []

    def watched(_: dict[str, Any]) -> Answer:
        followed.append(project.lopen("status", "--json"))
        return build("calc-t1")

    script = [
        plan(
            component("core", "AC-1"), component("report", "AC-2", depends_on=["core"]), tasks=("Add", "Say")
        ),
        watched,
        second(),
    ]
    project = make_project(script)
    project.specify(text=specification(criteria=("it adds", "it reports")))
    assert "calc: specified, no tasks yet" in project.lopen("status").out
    assert project.lopen("plan", "calc").code == 3  # the gate holds here too
    assert project.lopen("approve", "calc", "--yes").code == 0

    planned = project.lopen("plan", "calc")

    assert planned.code == 0, planned.err
    assert planned.last_line == "planning is complete; next: lopen run calc"
    assert len(project.requests) == 1
    drawn = project.read(".lopen/modules/calc/plan.md")
    assert "- [ ] **Add** (`calc-t1`)" in drawn
    assert "- [ ] AC-2: report" in drawn
    built = project.lopen("run", "calc", "--max-iterations", "2")
    assert built.code == 3, built.out + built.err
    assert followed[0].named("status")[0]["components"][0]["tasks"][0]["state"] == "in_progress"
    assert "- [x] **Add** (`calc-t1`)" in project.read(".lopen/modules/calc/plan.md")

    [module] = project.lopen("status", "--json").named("status")[0]["modules"]
    assert (module["module"], module["tasks_done"], module["tasks"]) == ("calc", 2, 2)
    assert module["tokens"] > 0
    shown = project.lopen("status", "calc").out
    for line in ("  ✓ core", "✓ calc-t1 Add", "○ report", "branch: lopen/calc", "next: lopen resume"):
        assert line in shown
    log = [event["event"] for event in project.lopen("log", "--json").events]
    assert log.count("committed") == 3
    assert log[0] == "session_started"
    session = project.status()["session"]
    assert "session_paused" in [e["event"] for e in project.lopen("log", session, "-f", "--json").events]


def test_other_users_read_nothing_of_lopens_state_and_hold_no_lock(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    state = project.root / ".lopen"
    state.mkdir(exist_ok=True)
    state.chmod(0o755)  # as a checkout leaves it

    assert project.approved_run().code == 0

    kept = [state, *state.rglob("*")]
    assert {path.name for path in kept} >= {"state.db", "locks", "recordings", "plan.md"}
    assert [(str(path), oct(path.stat().st_mode)) for path in kept if path.stat().st_mode & 0o077] == []
