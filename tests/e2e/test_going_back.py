"""Going back: reverted, vanished and rewritten work, and tasks that a person gives up."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools, verdict
from tests.fake_api import Answer
from tests.project import (
    Project,
    build,
    code,
    component,
    plan,
    specification,
    task,
    verified,
)


def second() -> Answer:
    return tools(*code("other"), *verified("calc-t2"))


@pytest.fixture
def two_tasks(make_project: MakeProject) -> Project:
    """A module of two tasks, both complete; scripted for doing the second one again.

    The criterion is met with the second task only.
    """
    not_yet = verdict(
        criteria=[{"id": "AC-1", "holds": "cannot_tell", "evidence": "it is not all there yet"}]
    )
    project = make_project(
        [plan(tasks=("Add", "Say it")), build("calc-t1"), second(), second(), second()],
        oracle=[not_yet, *[verdict() for _ in range(12)]],
    )
    project.run_module()
    return project


def test_revert_keeps_what_was_there_and_opens_the_tasks_again(two_tasks: Project) -> None:
    project = two_tasks
    head = project.git("rev-parse", "lopen/calc")
    assert "- [x] **AC-1**" in project.lopen("pr", "--print").out
    idle = project.lopen("revert")
    assert (idle.code, idle.out) == (
        0,
        "nothing to revert: calc is complete, and nothing has changed since\n",
    )
    assert project.git("for-each-ref", "refs/lopen/backup") == ""

    back = project.lopen("revert", "calc", "--to", "calc-t1")

    assert back.code == 0, back.err
    backup = f"refs/lopen/backup/{project.status()['session']}/1"
    assert backup in back.out
    assert project.git("rev-parse", backup) == head
    assert not project.holds("other.py")
    assert project.git("status", "--porcelain") == "?? specs/"
    (project.clone() / "mine.txt").write_text("not committed\n")
    (project.clone() / "calc.py").write_text("spoiled\n")
    again = project.lopen("revert", "calc")
    assert again.code == 0, again.err
    backup = backup.removesuffix("1") + "2"
    assert backup in again.out
    assert project.git("show", f"{backup}:mine.txt") == "not committed"
    assert project.git("show", f"{backup}:calc.py") == "spoiled"
    assert not (project.clone() / "mine.txt").exists()
    assert project.subjects()[-1] == "feat(calc): complete Add in core"
    shown = project.lopen("status").out
    assert "verdict on task calc-t1: passed" in shown
    assert "verdict on task calc-t2: passed" not in shown
    assert [t["state"] for t in project.status()["components"][0]["tasks"]] == ["complete", "pending"]
    assert "- [ ] **Say it**" in project.read(".lopen/modules/calc/plan.md")
    printed = project.lopen("pr", "--print").out
    assert "- [ ] **AC-1**" in printed
    assert " on task calc-t2" not in project.lopen("show", "calc-t2").out

    on = project.lopen("resume")

    assert on.code == 0, on.out + on.err
    assert f"what was there is kept in {backup}" in str(project.requests[-1]["system"])
    assert "Work in progress" not in str(project.requests[-1]["system"])
    assert project.subjects()[2:] == [
        "feat(calc): complete Add in core",
        "feat(calc): complete Say it in core",
    ]
    assert len(project.subjects()) == 4
    wrong = project.lopen("revert", "--to", "calc-t9")
    assert wrong.code == 1
    assert "calc-t9 has no commit" in wrong.err


def test_undo_restores_the_latest_backup_once(two_tasks: Project) -> None:
    project = two_tasks
    nothing = project.lopen("revert", "--undo")
    assert (nothing.code, "has no backup to restore" in nothing.err) == (1, True)
    head = project.git("rev-parse", "lopen/calc")
    assert project.lopen("revert", "--to", "calc-t1").code == 0
    reverted = project.git("rev-parse", "lopen/calc")
    (project.clone() / "later.txt").write_text("after the revert\n")

    undone = project.lopen("revert", "--undo")

    assert undone.code == 0, undone.err
    assert f" restored to {head[:12]}; backup: " in undone.out
    assert "complete again: calc-t2" in undone.out
    assert undone.out.endswith("-1 is complete again\n")
    assert not project.clone().exists()
    assert project.status()["status"] == "complete"
    assert project.git("rev-parse", "lopen/calc") == head
    assert not project.holds("later.txt")
    assert [t["state"] for t in project.status()["components"][0]["tasks"]] == ["complete", "complete"]
    assert " on module calc: passed" in project.lopen("show", "calc-t2").out

    again = project.lopen("revert", "--undo")
    assert (again.code, "nothing is left to undo" in again.err) == (1, True)
    assert project.git("rev-parse", "lopen/calc") == head
    backup = again.err.strip().rpartition(" ")[2]
    assert project.git("show", f"{backup}:later.txt") == "after the revert"
    assert project.git("rev-parse", f"{backup}^") == reverted
    assert project.lopen("revert", "--undo", "--to", "calc-t1").code == 2
    assert project.lopen("revert", "--to", "calc-t1").code == 0
    on = project.lopen("resume")
    assert on.code == 0, on.out + on.err


def test_undo_after_an_interrupted_revert_restores_what_was_there_before_it(two_tasks: Project) -> None:
    project = two_tasks
    head = project.git("rev-parse", "lopen/calc")
    assert project.lopen("revert", "--to", "calc-t1").code == 0
    target = project.git("rev-parse", "lopen/calc")
    assert project.lopen("revert", "--undo").code == 0
    backup = f"refs/lopen/backup/{project.status()['session']}/3"
    project.git("update-ref", backup, head)
    intent = json.dumps({"commit": target, "backup": backup, "head": head, "undo": False})
    with closing(sqlite3.connect(project.root / ".lopen" / "state.db")) as database, database:
        database.execute("UPDATE sessions SET body = json_set(body, '$.intents.revert', json(?))", (intent,))

    completed = project.lopen("revert")
    assert completed.code == 0, completed.err
    assert project.git("rev-parse", "lopen/calc") == target
    undone = project.lopen("revert", "--undo")

    assert undone.code == 0, undone.err
    assert project.git("rev-parse", "lopen/calc") == head
    assert project.holds("other.py")


def test_work_that_was_restored_and_merged_is_shown_as_merged(two_tasks: Project) -> None:
    project = two_tasks
    assert project.lopen("revert", "--to", "calc-t1").code == 0
    assert project.lopen("revert", "--undo").code == 0
    assert "next: lopen diff calc" in project.lopen("status", "calc").out
    assert project.lopen("merge", "calc").code == 0
    assert project.lopen("status", "calc").last_line == "lopen/calc is merged into main"


def third() -> Answer:
    return tools(*code("third"), *verified("calc-t3"))


def test_what_was_merged_stays_complete(make_project: MakeProject) -> None:
    project = make_project([plan(tasks=("Add", "Say it", "Print it")), build("calc-t1"), second(), third()])
    project.run_module("--max-iterations", "3", code=3)
    project.git("add", "specs")
    project.git("commit", "-q", "-m", "Specify")
    project.git("merge", "-q", "--no-ff", "-m", "Merge", "lopen/calc")
    project.git("branch", "-q", "-D", "lopen/calc")

    on = project.lopen("resume", "--json")

    assert on.code == 0, on.err
    assert {e["task"] for e in on.named("task_changed")} == {"calc-t3"}
    assert project.git("log", "--format=%s", "-2", "lopen/calc").splitlines() == [
        "feat(calc): complete Print it in core",
        "Merge",
    ]


def test_a_skipped_task_leaves_its_criteria_open_and_the_report_says_so(make_project: MakeProject) -> None:
    first = plan(component("core", "AC-1"), component("report", "AC-2"), tasks=("One", "Two"))
    other = tools(
        ("select_component", {"name": "report", "reason": "core is given up"}),
        ("record_tasks", {"component": "report", "tasks": [task("Report")]}),
    )
    project = make_project([first, second(), other, build("calc-t3", "third")])
    project.approve_module(text=specification(criteria=("it adds", "it reports")))
    assert project.lopen("plan", "calc").code == 0

    skipped = project.lopen("skip", "calc-t1", "--reason", "not needed any more")
    assert skipped.code == 0
    assert "open criteria: AC-1" in skipped.out
    on = project.lopen("resume")

    assert on.code == 3, on.out + on.err
    assert "open criteria: AC-1" in on.out
    assert on.last_line == "next: lopen run calc --new"
    assert "to take the complete tasks as they are" in on.out
    assert "git merge lopen/calc" in " ".join(on.out.split())
    assert "skipped: not needed any more" in project.lopen("status", "calc").out
    assert project.subjects()[-2:] == [
        "feat(calc): complete Two in core",  # the other tasks of the component go on
        "feat(calc): complete Report in report",
    ]
    done = project.lopen("skip", "calc-t2", "--reason", "late")
    assert done.code == 1
    assert "is complete" in done.err
    assert project.lopen("skip", "calc-t9", "--reason", "x").code == 1
