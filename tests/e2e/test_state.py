"""What lopen keeps: lost, damaged, newer, full, shared with another process; and the commands that show and change it."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
from typing import Any

import pytest

from lopen.llm.fake_api.server import Answer
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import (
    TIMEOUT_S,
    UNITTEST,
    Project,
    build,
    code,
    component,
    plan,
    specification,
    task,
    verified,
)
from tests.ran import Ran

DATABASE = ".lopen/state.db"


def second() -> Answer:
    return tools(*code("other"), *verified("calc-t2"))


class Meanwhile:
    """A turn during which the test does something to the process that waits for it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.seen: list[Any] = []

    def run(self, project: Project, *arguments: str) -> Ran:
        self.process = project.start(*arguments)
        try:
            out, err = self.process.communicate(timeout=TIMEOUT_S)
        finally:
            self.process.kill()
            self.process.wait()
        return Ran(self.process.returncode, out, err)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


# A database that is lost


@pytest.mark.parametrize("damage", ["half", "in the middle"])
def test_a_damaged_database_is_kept_aside_and_the_session_rebuilt(
    make_project: MakeProject, damage: str
) -> None:
    project = make_project([plan(tasks=("Add", "Say it")), build("calc-t1"), second()])
    project.specify()
    assert project.approved_run("calc", "--max-iterations", "2").code == 3
    project.write("calc.py", project.read("calc.py") + "# in progress\n")
    session = project.status()["session"]
    file = project.root / DATABASE
    content = file.read_bytes()
    changed = {
        "half": content[: len(content) // 2],
        "in the middle": content[:8192] + b"\xff" * 16384 + content[24576:],
    }[damage]
    file.write_bytes(changed)

    told = project.lopen("status")

    assert told.code == 0
    assert "moved to .lopen/corrupted/" in told.err
    assert f"rebuilt session {session}, 1 of 2 tasks complete" in told.err
    [kept] = (project.root / ".lopen/corrupted").glob("*state.db")
    assert kept.read_bytes() == changed
    shut = project.lopen("resume")
    assert (shut.code, shut.last_line) == (3, "next: lopen approve calc --run")
    on = project.lopen("approve", "calc", "--yes", "--run")
    assert on.code == 0, on.out + on.err
    assert project.subjects() == [
        "Begin",
        "docs(calc): approve specification",
        "feat(calc): complete Add in core",
        "feat(calc): complete Say it in core",
    ]
    assert len(project.requests) == 3  # what was planned and done is not paid for again
    assert project.read("calc.py").endswith("# in progress\n")
    assert project.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "named", ["../../../outside/evil", "other-20260301-1", "calc-20260301-1/../x", "calc"]
)
def test_no_trailer_says_where_files_are_written(make_project: MakeProject, named: str) -> None:
    project = make_project([plan(tasks=("Add", "Say it")), build("calc-t1"), second()])
    project.specify()
    assert project.approved_run("calc", "--max-iterations", "2").code == 3
    trailers = f"Lopen-Session: {named}\nLopen-Task: calc-t1\nLopen-Verdict: passed (high)"
    project.git("commit", "-q", "--allow-empty", "-m", f"feat(calc): complete Add in core\n\n{trailers}")
    (project.root / DATABASE).write_bytes(b"this is no database" * 20)
    outside = project.root.parent / "outside"
    outside.mkdir()

    told = project.lopen("status")

    assert re.search(r"rebuilt session calc-\d{8}-1, 1 of 2 tasks complete", told.err), told.err
    assert project.lopen("approve", "calc", "--yes", "--run").code == 0
    assert list(outside.iterdir()) == []
    assert project.status()["session"] != named


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
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0

    ran = meanwhile.run(project, "run", "calc")

    assert ran.code == 3, ran.out + ran.err
    assert len(project.requests) == 1
    assert str(project.root / ".lopen") in ran.err
    assert ran.last_line == "next: lopen resume"
    assert "Traceback" not in ran.err
    on = project.lopen("resume")
    assert on.code == 0, on.out + on.err
    assert len(project.subjects()) == 3


def test_a_disk_that_is_full_for_a_moment_is_waited_for(make_project: MakeProject) -> None:
    meanwhile = Meanwhile()

    def full(_: dict[str, Any]) -> Answer:
        before = resource.prlimit(meanwhile.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(meanwhile.pid, resource.RLIMIT_FSIZE, (0, before[1]))
        subprocess.Popen(  # gives the room back a moment later
            ["sh", "-c", f"sleep 1; exec prlimit --pid {meanwhile.pid} --fsize=unlimited:unlimited"]
        )
        return plan()

    project = make_project([full, plan(), build("calc-t1")])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0

    ran = meanwhile.run(project, "run", "calc")

    assert ran.code == 0, ran.out + ran.err
    assert len(project.subjects()) == 3


# Two processes


def test_a_second_process_is_told_whose_turn_it_is(make_project: MakeProject) -> None:
    meanwhile = Meanwhile()

    def busy(_: dict[str, Any]) -> Answer:
        project.specify("tax", specification("tax"))
        session = project.lopen("status", "calc", "--json").named("status")[0]["session"]
        meanwhile.seen += [
            project.lopen(*arguments)
            for arguments in (
                ("run", "calc", "--new"),
                ("resume",),
                ("run", "tax"),
                ("revert", "calc"),
                ("answer", session, "yes"),
                ("confirm", session),
            )
        ]
        meanwhile.seen.append(project.lopen("log", "--json"))
        return plan(tasks=("Add",))

    project = make_project([busy, build("calc-t1")])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0

    ran = meanwhile.run(project, "run", "calc")

    assert ran.code == 0, ran.out + ran.err
    *refused, log = meanwhile.seen
    for other in refused:
        assert other.code == 1
        assert f"process {meanwhile.pid} on {socket.gethostname()}" in other.err
    assert log.code == 0
    assert log.named("session_started")
    assert [s["session"] for s in project.lopen("session", "list", "--json").events] == [
        project.status()["session"]
    ]


def test_a_dead_process_s_lock_is_taken_over(make_project: MakeProject) -> None:
    meanwhile = Meanwhile()

    def killed(_: dict[str, Any]) -> Answer:
        os.kill(meanwhile.pid, signal.SIGKILL)
        return plan()

    project = make_project([killed, plan(), build("calc-t1")])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    assert meanwhile.run(project, "run", "calc").code == -signal.SIGKILL

    assert project.lopen("resume").code == 0
    # A number that was used before does not make this process a part of that session.
    holder = project.root / ".lopen/locks/module-calc.holder"
    holder.write_text(json.dumps({"pid": os.getpid(), "started": 1, "host": socket.gethostname()}))
    assert project.lopen("approve", "calc", "--yes").code == 0


def test_sessions_are_numbered_by_module_and_day_and_new_begins_another(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.lopen("run", "calc").code == 3
    assert project.lopen("run", "calc").code == 3
    assert project.lopen("run", "calc", "--new").code == 3

    ids = [event["session"] for event in project.lopen("session", "list", "--json").events]

    assert [re.sub(r"\d{8}", "DAY", i) for i in ids] == ["calc-DAY-2", "calc-DAY-1"]
    assert project.approved_run("calc").code == 0
    assert project.status()["session"] == ids[0]


# Going back


@pytest.fixture
def two_tasks(make_project: MakeProject) -> Project:
    """A module of two tasks, both complete; scripted for doing the second one again."""
    project = make_project([plan(tasks=("Add", "Say it")), build("calc-t1"), second(), second(), second()])
    project.specify()
    assert project.approved_run().code == 0
    return project


def test_revert_keeps_what_was_there_and_opens_the_tasks_again(two_tasks: Project) -> None:
    project = two_tasks
    head = project.git("rev-parse", "HEAD")
    project.write("other.py", "spoiled\n")
    project.write("mine.txt", "not committed\n")

    back = project.lopen("revert", "calc", "--to", "calc-t1")

    assert back.code == 0, back.err
    backup = f"refs/lopen/backup/{project.status()['session']}/1"
    assert backup in back.out
    assert project.git("rev-parse", f"{backup}^") == head
    assert project.git("show", f"{backup}:mine.txt") == "not committed"
    assert project.git("show", f"{backup}:other.py") == "spoiled"
    assert project.git("status", "--porcelain") == ""
    assert project.subjects()[-1] == "feat(calc): complete Add in core"
    shown = project.lopen("status").out
    assert "verdict on task calc-t1: passed" in shown
    assert "verdict on task calc-t2: passed" not in shown
    assert [t["state"] for t in project.status()["components"][0]["tasks"]] == ["complete", "pending"]
    assert "- [ ] **Say it**" in project.read(".lopen/modules/calc/plan.md")

    on = project.lopen("resume")

    assert on.code == 0, on.out + on.err
    assert f"what was there is kept in {backup}" in str(project.requests[-1]["system"])
    assert "Work in progress" not in str(project.requests[-1]["system"])
    assert project.subjects()[2:] == [
        "feat(calc): complete Add in core",
        "feat(calc): complete Say it in core",
    ]
    project.write("mine.txt", "not committed\n")
    back = project.lopen("revert")
    assert back.code == 0
    assert back.out.startswith("calc (session calc-")
    assert not (project.root / "mine.txt").exists()
    assert len(project.subjects()) == 4
    wrong = project.lopen("revert", "--to", "calc-t9")
    assert wrong.code == 1
    assert "calc-t9 has no commit" in wrong.err


def test_undo_restores_the_latest_backup_and_can_be_undone(two_tasks: Project) -> None:
    project = two_tasks
    nothing = project.lopen("revert", "--undo")
    assert (nothing.code, "has no backup to restore" in nothing.err) == (1, True)
    head = project.git("rev-parse", "HEAD")
    project.write("other.py", "spoiled\n")
    project.write("mine.txt", "not committed\n")
    assert project.lopen("revert", "--to", "calc-t1").code == 0
    reverted = project.git("rev-parse", "HEAD")
    project.write("later.txt", "after the revert\n")

    undone = project.lopen("revert", "--undo")

    assert undone.code == 0, undone.err
    assert "complete again: calc-t2" in undone.out
    assert project.git("rev-parse", "HEAD") == head
    assert (project.read("other.py"), project.read("mine.txt")) == ("spoiled\n", "not committed\n")
    assert not (project.root / "later.txt").exists()
    assert [t["state"] for t in project.status()["components"][0]["tasks"]] == ["complete", "complete"]

    assert project.lopen("revert", "--undo").code == 0
    assert project.git("rev-parse", "HEAD") == reverted
    assert project.read("later.txt") == "after the revert\n"
    assert [t["state"] for t in project.status()["components"][0]["tasks"]] == ["complete", "pending"]
    assert project.lopen("revert", "--undo", "--to", "calc-t1").code == 2
    on = project.lopen("resume")
    assert on.code == 0, on.out + on.err


def test_a_task_whose_commit_vanished_is_open_again(make_project: MakeProject) -> None:
    project = make_project(
        [plan(tasks=("Add", "Say it", "Print it")), build("calc-t1"), second(), second(), third()]
    )
    project.specify()
    assert project.approved_run("calc", "--max-iterations", "3").code == 3
    project.git("reset", "-q", "--hard", "HEAD^")

    on = project.lopen("resume")

    assert on.code == 0, on.out + on.err
    assert "task calc-t2 is open again: its commit" in on.out
    assert project.subjects()[2:] == [
        "feat(calc): complete Add in core",
        "feat(calc): complete Say it in core",
        "feat(calc): complete Print it in core",
    ]


def third() -> Answer:
    return tools(*code("third"), *verified("calc-t3"))


def test_what_was_rewritten_or_merged_stays_complete(make_project: MakeProject) -> None:
    project = make_project([plan(tasks=("Add", "Say it", "Print it")), build("calc-t1"), second(), third()])
    project.specify()
    assert project.approved_run("calc", "--max-iterations", "3").code == 3
    project.git("commit", "-q", "--amend", "--date=2001-01-01T00:00:00", "--no-edit")
    project.git("switch", "-q", "main")
    assert project.git("status", "--porcelain") == ""
    waiting = project.status()
    elsewhere = project.lopen("resume")
    assert elsewhere.code == 1
    assert "HEAD is on main, not on lopen/calc" in elsewhere.err
    assert "git switch lopen/calc" in elsewhere.err
    assert len(project.requests) == 3
    assert project.status() | {"ts": ""} == waiting | {"ts": ""}  # nothing was tried: it waits as it did
    assert waiting["status"] == "paused"
    assert "failed: HEAD is on main" in project.lopen("log").out
    project.git("switch", "-q", "lopen/calc")
    project.git("switch", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "Merge", "lopen/calc")
    project.git("branch", "-q", "-D", "lopen/calc")

    on = project.lopen("resume", "--json")

    assert on.code == 0, on.err
    assert {e["task"] for e in on.named("task_changed")} == {"calc-t3"}
    assert project.git("log", "--format=%s", "-2", "lopen/calc").splitlines() == [
        "feat(calc): complete Print it in core",
        "Merge",
    ]


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
    assert "calc: specified, no tasks yet" in project.lopen("modules").out
    assert project.lopen("plan", "calc").code == 3  # the gate holds here too
    assert project.lopen("approve", "calc", "--yes").code == 0

    planned = project.lopen("plan", "calc")

    assert planned.code == 0, planned.err
    assert planned.last_line == "planning is complete; next: lopen run calc"
    assert len(project.requests) == 1
    drawn = project.read(".lopen/modules/calc/plan.md")
    assert "- [ ] **Add** (`calc-t1`)" in drawn
    assert "- [ ] AC-2: report" in drawn
    built = project.lopen("build", "calc", "--max-iterations", "2")
    assert built.code == 3, built.out + built.err
    assert followed[0].named("status")[0]["components"][0]["tasks"][0]["state"] == "in_progress"
    assert "- [x] **Add** (`calc-t1`)" in project.read(".lopen/modules/calc/plan.md")

    [module] = project.lopen("modules", "--json").events
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


def test_sessions_are_shown_exported_deleted_and_pruned(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.approved_run().code == 0
    session = project.status()["session"]

    assert project.lopen("session", "show", session).out.startswith(f"# {session}\n")
    assert (
        json.loads(project.lopen("session", "show", session, "--format", "json").out)["status"] == "complete"
    )
    assert "status: complete" in project.lopen("session", "show", session, "--format", "yaml").out
    recording = project.root.with_name("recording")
    assert project.lopen("session", "export", session, "--recording", str(recording)).code == 0
    assert recording.stat().st_size > 0
    assert project.lopen("session", "export", session).code == 2
    assert "nothing to resume" in project.lopen("session", "resume", session).out
    project.specify(text=specification(criteria=("it adds", "it subtracts")))
    assert project.lopen("run", "calc").code == 3
    unfinished = project.status()["session"]
    refused = project.lopen("session", "delete", unfinished)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert project.lopen("session", "delete", unfinished, "--yes").code == 0
    assert project.lopen("session", "prune", "--json").events[0]["sessions_archived"] == 0
    assert project.lopen("session", "delete", session).code == 0
    assert project.lopen("session", "list", "--json").out == ""
    for arguments in (("show", "calc-20200101-1"), ("delete", "nothing"), ("resume", "nothing")):
        missing = project.lopen("session", *arguments)
        assert missing.code == 1
        assert "lopen session list" in missing.err
    assert project.lopen("status", "nothing").code == 1
    assert len(project.subjects()) == 3


def test_a_skipped_task_leaves_its_criteria_open_and_the_report_says_so(make_project: MakeProject) -> None:
    first = plan(component("core", "AC-1"), component("report", "AC-2"))
    other = tools(
        ("select_component", {"name": "report", "reason": "core is given up"}),
        ("record_tasks", {"component": "report", "tasks": [task("Report")]}),
    )
    project = make_project([first, other, second()])
    project.specify(text=specification(criteria=("it adds", "it reports")))
    assert project.lopen("approve", "calc", "--yes").code == 0
    assert project.lopen("plan", "calc").code == 0

    skipped = project.lopen("skip", "calc-t1", "--reason", "not needed any more")
    assert skipped.code == 0
    assert "open criteria: AC-1" in skipped.out
    on = project.lopen("resume")

    assert on.code == 3, on.out + on.err
    assert "open criteria: AC-1" in on.out
    assert on.last_line == "next: lopen run calc --new"
    assert "skipped: not needed any more" in project.lopen("status", "calc").out
    assert project.subjects()[-1] == "feat(calc): complete Report in report"
    done = project.lopen("skip", "calc-t2", "--reason", "late")
    assert done.code == 1
    assert "is complete" in done.err
    assert project.lopen("skip", "calc-t9", "--reason", "x").code == 1
    assert project.lopen("skip", "calc-t1").code == 2


def test_other_users_read_nothing_of_lopens_state_and_hold_no_lock(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    state = project.root / ".lopen"
    state.mkdir(exist_ok=True)
    (state / "config.toml").touch()
    for place, mode in ((state, 0o755), (state / "config.toml", 0o644)):
        place.chmod(mode)  # as an older lopen or a checkout leaves them

    assert project.approved_run().code == 0

    kept = [state, *(path for path in state.rglob("*") if state / "cache" not in path.parents)]
    assert {path.name for path in kept} >= {"state.db", "locks", "recordings", "plan.md", "cache"}
    assert [(str(path), oct(path.stat().st_mode)) for path in kept if path.stat().st_mode & 0o077] == []


def test_an_approval_shows_the_whole_command(make_project: MakeProject) -> None:
    project = make_project()
    hidden = f"`{UNITTEST}{' ' * 4_000}; echo\u00a0x`"
    project.specify().write_text(specification().replace(f"`{UNITTEST}`", hidden))

    ran = project.lopen("approve", "calc", "--yes")

    assert "<4000 spaces>; echo<U+00A0>x" in ran.out, ran.err
