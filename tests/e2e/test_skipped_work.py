"""The work of a task that a person skips: in no later commit, in a backup, and back after an undo."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.fake_api import Answer
from tests.project import Project, build, code, plan, specification, verified
from tests.ran import Ran

BACKUP = "refs/lopen/backup/"


def _begun(make_project: MakeProject, *turns: Any, act: Any = ("pause",), name: str = "p") -> Project:
    """Return a project of two tasks whose run ended, or was asked to `act`, after the first one's files were written."""

    def writing(_: dict[str, Any]) -> Answer:
        asked = project.lopen(*act)
        assert asked.code == 0
        told = f"{'Write it is skipped when its' if act[0] == 'skip' else 'it pauses after its'} present"
        assert told in project.lopen("status").out
        assert told.removeprefix("Write it ") in asked.out or act[0] == "pause"
        return tools(*code("calc1"))

    project = make_project([plan(tasks=["Write it", "Document it"]), writing, *turns], name=name)
    project.approve_module(specification(criteria=["add(1, 2) is 3"]))
    return project


def _files(project: Project) -> list[str]:
    """The files that the last commit of the branch changed."""
    return project.git("show", "--name-only", "--format=", "lopen/calc").split()


def _skipped(project: Project) -> Ran:
    skipped = project.lopen("skip", "calc-t1", "--reason", "not good")
    assert skipped.code == 0, skipped.err
    return skipped


def test_the_work_of_a_skipped_task_is_put_aside_and_comes_back(make_project: MakeProject) -> None:
    project = _begun(make_project, build("calc-t2", "calc2"), tools(*verified("calc-t1")))
    assert project.lopen("run", "calc").code == 3
    said = _skipped(project).out
    assert f"its uncommitted work is put aside in {BACKUP}" in said
    assert "to undo this: lopen revert calc --undo" in said

    assert project.lopen("resume").code == 3  # a skipped task leaves its component open
    assert sorted(_files(project)) == ["calc2.py", "test_calc2.py"]
    shown = project.lopen("show", "calc-t1").out
    assert f"its uncommitted work is in {BACKUP}" in shown
    assert "+++ b/calc1.py" in shown

    undone = project.lopen("revert", "--undo")
    assert "reopened: calc-t2, calc-t1" in undone.out, undone.out + undone.err
    assert (project.clone() / "calc1.py").exists()
    states = {t["id"]: t["state"] for c in project.status()["components"] for t in c["tasks"]}
    assert states == {"calc-t1": "failed", "calc-t2": "pending"}
    status = project.lopen("status").out
    assert "skipped" not in status
    assert "given up" not in status
    project.lopen("resume", "--max-iterations", "1")
    assert sorted(_files(project)) == ["calc1.py", "test_calc1.py"]


def test_an_undone_skip_asks_again_what_it_asked_before(make_project: MakeProject) -> None:
    fails = tools(("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "not yet"}))
    project = make_project([plan(), *[fails] * 3])
    waits = project.run_module(code=3)
    assert waits.last_line.startswith("next: lopen confirm calc-"), waits.out
    _skipped(project)
    undone = project.lopen("revert", "--undo")
    assert undone.last_line == waits.last_line, undone.out + undone.err
    shown = project.lopen("status").out
    assert "waits: task calc-t1" in shown
    assert shown.splitlines()[-1] == waits.last_line


def test_a_running_session_puts_it_aside_unless_it_is_to_keep_it(make_project: MakeProject) -> None:
    gives_up = tools(("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "too hard"}))
    project = _begun(make_project, gives_up, build("calc-t2", "calc2"), act=("skip", "calc-t1"))
    ran = project.lopen("run", "calc")
    assert "the uncommitted work of calc-t1 is put aside" in ran.out
    assert sorted(_files(project)) == ["calc2.py", "test_calc2.py"]

    kept = _begun(
        make_project, gives_up, build("calc-t2", "calc2"), act=("skip", "calc-t1", "--keep"), name="kept"
    )
    ran = kept.lopen("run", "calc")
    assert "put aside" not in ran.out
    assert "calc1.py" in _files(kept)
    assert kept.lopen("revert", "--undo").last_line.startswith("next: lopen resume")
    assert "calc-t1" in kept.lopen("status").out.partition("skipped")[0]


def test_skipping_it_again_leaves_the_work_of_the_task_in_progress(make_project: MakeProject) -> None:
    gives_up = tools(("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "too hard"}))

    def next_one(_: dict[str, Any]) -> Answer:
        assert project.lopen("pause").code == 0
        return tools(*code("calc2"))

    project = _begun(make_project, gives_up, next_one, act=("skip", "calc-t1"))
    assert project.lopen("run", "calc").code == 3
    _skipped(project)
    assert (project.clone() / "calc2.py").exists()


@pytest.mark.parametrize(
    "point",
    ["after:lopen.git.repository:Repository.backup", "after:lopen.git.work_tree:WorkTree.reset"],
)
def test_a_skip_that_is_cut_off_is_done_or_not(point: str, make_project: MakeProject) -> None:
    project = _begun(make_project, build("calc-t2", "calc2"))
    assert project.lopen("run", "calc").code == 3
    assert project.ended_at(point, "skip", "calc-t1").code == -9
    said = project.lopen("status")
    if "put aside" not in said.err:
        _skipped(project)
    assert not (project.clone() / "calc1.py").exists()
    project.lopen("resume")
    assert sorted(_files(project)) == ["calc2.py", "test_calc2.py"]
    assert project.lopen("revert", "--undo").code == 0
    assert (project.clone() / "calc1.py").exists()
