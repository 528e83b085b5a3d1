"""Sessions that end, are deleted, follow one another, and belong to somebody."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.e2e.conftest import MakeProject
from tests.endpoint import status, tools
from tests.project import Project, build, plan, verified

HOLD = """
import sys
from pathlib import Path
from lopen.store.folder import exclusive_lock
with exclusive_lock(Path(sys.argv[1]), "module-calc", "module calc"):
    print("held", flush=True)
    sys.stdin.read()
"""


def again(task_id: str) -> object:
    """Another session's task, with work of its own."""
    more = ("write_file", {"path": f"{task_id[-2:]}.py", "content": f"WHO = {task_id!r}\n"})
    return tools(more, *verified(task_id))


def sessions(project: Project) -> dict[str, str]:
    """Each session with its status."""
    listed = project.lopen("session", "list", "--json")
    assert listed.code == 0, listed.err
    return {s["session"]: s["status"] for s in listed.named("session")}


def test_a_session_that_is_worked_on_is_not_deleted(make_project: MakeProject) -> None:
    project = make_project([plan()])
    project.run_module("--max-iterations", "1", code=3)
    (session,) = sessions(project)

    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(project.root / ".lopen" / "locks")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        refused = project.lopen("session", "delete", session, "--yes")
        other.communicate()

    assert refused.code == 1
    assert "is working on module calc" in refused.err
    assert list(sessions(project)) == [session]
    assert project.lopen("session", "delete", "calc").code == 2  # not finished, and nobody was asked
    assert project.lopen("session", "delete", "calc", "--yes").out == f"deleted {session}\n"


def test_a_session_that_a_completed_one_left_behind_is_not_gone_on_with(make_project: MakeProject) -> None:
    project = make_project([status(400, "no"), status(400, "no"), plan(), build("calc-t1")])
    project.run_module(code=1)
    assert project.lopen("run", "calc", "--new").code == 1
    assert project.lopen("status").out.count("calc: failed") == 1, "only the newest session is gone on with"
    assert project.resume().code == 0
    assert list(sessions(project).values()) == ["complete", "failed"]

    shown, ran, resumed = project.lopen("status"), project.lopen("run", "calc"), project.lopen("resume")

    assert shown.out.startswith("calc: complete (session calc-")
    assert "calc: failed" not in shown.out
    assert "calc is complete" in ran.out
    assert "nothing to resume" in resumed.out
    assert (shown.code, ran.code, resumed.code) == (0, 0, 0)
    for command in ("run calc", "resume"):
        [told] = project.lopen(*command.split(), "--json").named("already_complete")
        assert told["module"] == "calc"


def test_a_database_that_was_moved_comes_back_by_the_command_that_is_named(
    make_project: MakeProject, tmp_path: Path
) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.run_module()
    began = project.lopen("run", "calc", XDG_DATA_HOME=str(tmp_path / "elsewhere"))
    assert began.code == 3, began.err
    line = began.err.partition("To restore it: mv ")[2].splitlines()[0]
    kept, place = line.split()

    (project.root / kept).rename(project.root / place)

    assert "complete" in sessions(project).values()


def test_a_killed_run_shows_as_interrupted_and_an_approval_as_given(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.lopen("run", "calc").code == 3
    assert project.status()["waiting"]["command"] == "lopen approve calc --run"
    assert project.lopen("approve", "calc", "--yes").code == 0
    waiting = project.status()["waiting"]
    assert (waiting["kind"], waiting["message"]) == ("ready", "its specification is approved")
    assert (
        project.ended_at(
            "after:lopen.loop.model_calls:ModelCalls._settle", *waiting["command"].split()[1:]
        ).code
        < 0
    )

    [(session, shown)] = sessions(project).items()
    assert shown == "interrupted"
    status = project.status()
    assert (status["status"], status["waiting"]["command"]) == ("interrupted", f"lopen resume {session}")
    for told in (project.lopen("status").out, project.lopen("status", session).out):
        assert f"calc: interrupted (session {session})" in told
        assert f"next: lopen resume {session}" in told
    assert project.lopen("resume").code == 0
    assert sessions(project) == {session: "complete"}


def test_a_session_that_cannot_be_read_is_set_aside_with_a_line(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1"), plan(), again("calc-t1")])
    project.run_module()
    [first] = sessions(project)
    assert project.lopen("merge", "calc").code == 0
    with closing(sqlite3.connect(project.root / ".lopen" / "state.db")) as database, database:
        database.execute("UPDATE sessions SET body='{}'")

    listed = project.lopen("status")
    assert listed.code == 0
    assert f"cannot read session {first}, which is set aside" in listed.err
    assert "pydantic" not in listed.err
    for command in (["session", "list"], ["status"], ["log"], ["memory"], ["check"]):
        ran = project.lopen(*command)
        assert "cannot read" not in ran.err, command
    named = project.lopen("status", first)
    assert (named.code, "its rows stay in .lopen/state.db" in named.err) == (1, True)
    assert project.lopen("run", "calc").code == 0, "the next session goes on without it"
    assert set(sessions(project).values()) == {"complete"}
