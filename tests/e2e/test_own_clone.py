"""lopen's own clone and the person's repository: what each does to the branch, and what the other makes of it."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.fake_api import Answer
from tests.project import Project, build, code, plan, verified
from tests.ran import Ran

TASKS = ("Add", "Say it")


def second(*before: tuple[str, dict[str, Any]]) -> Answer:
    """The calls that complete the second task."""
    return tools(*before, *code("other"), *verified("calc-t2"))


@pytest.fixture
def begun(make_project: MakeProject) -> Project:
    """A module of two tasks, the first of which is complete."""
    project = make_project([plan(tasks=TASKS), build("calc-t1"), second()])
    project.run_module("--max-iterations", "2", code=3)
    assert len(project.subjects()) == 3
    return project


def commit_on_branch(project: Project, onto: str = "lopen/calc") -> str:
    """Commit in a work tree beside the checkout, and move the branch there; return the commit."""
    beside = project.root.parent / "beside"
    project.git("worktree", "add", "-q", "--detach", str(beside), onto)
    (beside / "MINE").write_text("mine\n")
    project.git("-C", str(beside), "add", "MINE")
    project.git("-C", str(beside), "commit", "-qm", "Mine")
    commit = project.git("-C", str(beside), "rev-parse", "HEAD")
    project.git("worktree", "remove", str(beside))
    project.git("branch", "-q", "-f", "lopen/calc", commit)
    return commit


def resumed(project: Project) -> Ran:
    """Go on; every task is complete afterwards."""
    ran = project.lopen("resume")
    assert ran.code == 0, ran.out + ran.err
    assert project.subjects()[-1] == "feat(calc): complete Say it in core"
    return ran


def command_of(ran: Ran) -> str:
    """Return the command that the last line of a pause names."""
    assert ran.code == 3, ran.out + ran.err
    return (ran.out + ran.err).rstrip().splitlines()[-1].partition("git ")[2].split("; then")[0].strip()


def test_a_person_s_commit_is_taken_over_before_the_next_task(begun: Project) -> None:
    mine = commit_on_branch(begun)

    ran = resumed(begun)

    assert f"took over {mine[:12]}, which you committed on lopen/calc" in ran.out
    assert begun.git("rev-parse", "lopen/calc^") == mine
    assert begun.holds("MINE")


def test_a_commit_made_while_the_task_is_done_is_taken_over_and_verified(make_project: MakeProject) -> None:
    project: Project

    def meanwhile(_: dict[str, Any]) -> Answer:
        commit_on_branch(project)
        return tools(*code(), *verified("calc-t1"))

    project = make_project([plan(), meanwhile, tools(*verified("calc-t1"))])
    project.run_module()
    assert "the person committed on the branch" in str(project.requests[-1])
    assert project.subjects()[-2:] == ["Mine", "feat(calc): complete Write it in core"]


def test_a_branch_that_does_not_descend_waits_with_the_command_that_puts_it_back(begun: Project) -> None:
    done = begun.git("rev-parse", "lopen/calc")
    mine = commit_on_branch(begun, onto="main")

    waits = begun.lopen("resume")

    assert f"lopen/calc is at {mine[:12]} in your repository" in waits.out + waits.err
    assert begun.git("rev-parse", "lopen/calc") == mine
    begun.git(*command_of(waits).split())
    assert begun.git("rev-parse", "lopen/calc") == done
    resumed(begun)


def test_a_branch_that_the_person_deleted_begins_anew_and_its_tasks_are_open_again(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(tasks=TASKS), build("calc-t1"), build("calc-t1"), second()])
    project.run_module("--max-iterations", "2", code=3)
    project.git("branch", "-q", "-D", "lopen/calc")

    ran = resumed(project)

    assert "task calc-t1 is open again" in ran.out
    assert project.subjects() == ["Begin", *(f"feat(calc): complete {name} in core" for name in TASKS)]
    assert project.holds("calc.py")


def test_a_checkout_that_stands_on_the_branch_waits_until_it_left(begun: Project) -> None:
    begun.git("add", "specs")
    begun.git("commit", "-qm", "Specify")
    begun.git("switch", "-q", "lopen/calc")
    before = begun.git("rev-parse", "HEAD")

    waits = begun.lopen("resume")

    assert "lopen does not change your checkout" in waits.out + waits.err
    assert begun.git("rev-parse", "HEAD") == before
    begun.git(*command_of(waits).split())
    resumed(begun)


def test_the_next_run_removes_the_clone_of_a_finished_session_and_does_not_warn(begun: Project) -> None:
    clone, aside = begun.clone().parent, begun.root.parent / "aside"
    shutil.copytree(clone, aside, symlinks=True)
    resumed(begun)
    clone.parent.mkdir(parents=True, exist_ok=True)
    aside.rename(clone)  # as a process leaves it that is killed before it removes the clone
    begun.specify("tax")

    ran = begun.lopen("run", "tax")

    [line] = [
        line for line in ran.out.splitlines() if f"removed {clone}, the clone of a finished session" in line
    ]
    assert "warning" not in line
    assert not clone.exists()


def test_diff_shows_uncommitted_work_of_a_running_and_of_a_paused_build(make_project: MakeProject) -> None:
    shown: list[str] = []
    project: Project

    def looks(_: dict[str, Any]) -> Answer:
        shown.append(project.lopen("diff", "calc").out)
        return tools(("run_command", {"command": "true"}))

    project = make_project([plan(), tools(code()[0]), looks])
    project.specify()

    assert project.approved_run().code != 0

    assert "+++ b/calc.py" in shown[0]
    assert "+++ b/calc.py" in project.lopen("diff", "calc").out
    assert str(project.clone()) in project.lopen("status", "calc").out
    assert not (project.root / "calc.py").exists()


def test_a_clone_left_behind_by_another_repository_at_the_path_is_not_built_on(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(), tools(code()[0])])
    project.specify()
    assert project.approved_run().code != 0
    assert (project.clone() / "calc.py").exists()
    shutil.rmtree(project.root)
    again = make_project([plan(), tools(*code("calc"), *verified("calc-t1"))])
    again.write("OTHER", "another project\n")
    again.git("add", "-A")
    again.git("commit", "-qm", "Another")
    again.specify()

    ran = again.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert again.holds("OTHER")
    assert again.subjects()[:3] == ["Begin", "Another", "docs(calc): approve specification"]
    assert "the clone belongs to another repository" in ran.out + ran.err
    assert again.git("fsck", "--strict") == ""
