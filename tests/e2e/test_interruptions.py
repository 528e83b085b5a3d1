"""Ended anywhere, by a signal or outright: `lopen resume` goes on, and every task is committed once."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
from fcntl import ioctl
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.fake_api import Answer
from tests.preloaded.started import StartedCommand
from tests.project import (
    TIMEOUT_S,
    UNITTEST,
    Project,
    code,
    component,
    plan,
    specification,
    task,
    verified,
)
from tests.ran import Ran

CODES = {"KILL": -signal.SIGKILL, "INT": 130, "TERM": 143, "HUP": 129}
TASKS = {"calc-t1": ("Add", "calc"), "calc-t2": ("Say it", "other"), "calc-t3": ("Print it", "third")}

# In the order in which a run comes by them. What a killed run leaves at every effect is swept in `tests/crash`.
POINTS = (
    ("INT", "before:lopen.files.module_branch:ModuleBranch.begin"),
    ("TERM", "after:lopen.files.module_branch:ModuleBranch._first_commit"),
    ("HUP", "after:lopen.tools.planning:_advance"),
    ("INT", "after:lopen.verification.verifier:Verifier._run"),
    ("TERM", "after:lopen.tools.task_completion:_record"),
    ("HUP", "after:lopen.loop.boundaries:close_module"),
)


def worker(body: dict[str, Any]) -> Answer:
    """A model that does what the state in its prompt asks for, whatever was lost before."""
    prompt = "\n".join(block["text"] for block in body["system"])
    step = int(re.findall(r"^step: (\d)", prompt, re.MULTILINE)[0])
    if step == 6:
        [doing] = re.findall(r"^id: (calc-t\d)$", prompt, re.MULTILINE)
        return tools(*code(TASKS[doing][1]), *verified(doing))
    tasks = [task(name) for name, _ in TASKS.values()]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("record_dependencies", {"dependencies": []}),
        ("record_components", {"components": [component("core", "AC-1")]}),
        ("select_component", {"name": "core", "reason": "it is the only one"}),
        ("record_tasks", {"component": "core", "tasks": tasks}),
    ]
    return tools(*calls[step - 2 :])


def crashing(make_project: MakeProject, script: Any = worker) -> Project:
    project = make_project(script)
    project.approve_module()
    return project


def crashed(project: Project, word: str, point: str) -> Ran:
    """Go on, up to the point; the signal is what ends it."""
    ran = project.ended_at(point, "run", "calc", signal_name=f"SIG{word}")
    assert ran.code == CODES[word], (point, ran.out, ran.err)
    assert "Traceback" not in ran.out + ran.err
    return ran


def is_as_if_nothing_had_happened(project: Project) -> None:
    """Every task has its one commit; tree, index and plan are those of an undisturbed run."""
    assert project.git("branch", "--show-current") == "main"
    assert project.subjects() == [
        "Begin",
        "docs(calc): approve specification",
        *(f"feat(calc): complete {name} in core" for name, _ in TASKS.values()),
    ]
    assert project.git("status", "--porcelain") == "?? specs/"
    names = project.git("ls-tree", "-r", "--name-only", "lopen/calc").splitlines()
    files = [file for _, file in TASKS.values()]
    assert [n for n in names if n.endswith(".py")] == sorted(
        [f"{f}.py" for f in files] + [f"test_{f}.py" for f in files]
    )
    assert project.git("fsck", "--no-dangling") == ""
    commits = project.git("log", "-3", "--format=%H", "lopen/calc").splitlines()[::-1]
    [core] = project.status()["components"]
    assert [(t["state"], t["commit"]) for t in core["tasks"]] == [("complete", c) for c in commits]
    plan = project.read(".lopen/modules/calc/plan.md")
    assert all(f"- [x] **{name}** (`{id}`)" in plan for id, (name, _) in TASKS.items())


def test_a_run_that_is_asked_to_stop_at_every_point_is_finished_in_the_end(make_project: MakeProject) -> None:
    project = crashing(make_project)

    for word, point in POINTS:
        crashed(project, word, point)

    on = project.lopen("run", "calc")
    assert on.code == 0, on.out + on.err
    is_as_if_nothing_had_happened(project)


def begun(project: Project, *arguments: str) -> StartedCommand:
    return project.start("run", "calc", *arguments)


def ended(process: StartedCommand) -> Ran:
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        code = process.wait(TIMEOUT_S)
    return Ran(code, out, err)


def test_ctrl_c_ends_the_request_under_way_and_says_how_to_go_on(make_project: MakeProject) -> None:
    running: list[StartedCommand] = []

    def interrupted(_: dict[str, Any]) -> Answer:
        running[0].send_signal(signal.SIGINT)
        running[0].wait(TIMEOUT_S)  # it does not wait for an answer
        return tools()

    turns = iter((worker, worker, interrupted))
    project = crashing(make_project, lambda body: next(turns, worker)(body))
    running.append(begun(project))

    ran = ended(running[0])

    assert ran.code == 130
    assert "interrupted" in ran.err
    session = project.status()
    assert session["status"] == "paused"
    assert session["waiting"]["command"] == f"lopen resume {session['session']}"
    assert f"to continue: lopen resume {session['session']}" in ran.out
    assert project.lopen("resume").code == 0
    is_as_if_nothing_had_happened(project)


def test_a_run_whose_terminal_is_closed_is_saved(make_project: MakeProject) -> None:
    """Closing the pseudo-terminal sends SIGHUP, and every later write fails."""
    hang_up = threading.Event()

    def closed(_: dict[str, Any]) -> Answer:
        hang_up.set()
        return tools()

    def show(terminal: int) -> None:
        while not hang_up.is_set():
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 65_536)
        os.close(terminal)

    turns = iter((worker, worker, closed))
    project = crashing(make_project, lambda body: next(turns, worker)(body))
    master, theirs = pty.openpty()
    screen = threading.Thread(target=show, args=(master,))
    screen.start()
    process = subprocess.Popen(
        [sys.executable, "-m", "lopen", "run", "calc"],
        cwd=project.root,
        env={**project.environment(), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        assert process.wait(TIMEOUT_S) == 129
    finally:
        hang_up.set()
        screen.join()
        process.kill()
        process.wait()

    assert project.status()["status"] == "paused"
    assert project.lopen("resume").code == 0
    is_as_if_nothing_had_happened(project)


WORTH = "def worth(a, b):\n    if a > b and b > 0:\n        return a * 2 + b\n    return a - b\n"
TEST_WORTH = """import unittest

from calc import worth


class TestWorth(unittest.TestCase):
    def test_worth(self):
        self.assertEqual([worth(5, 3), worth(3, 5), worth(3, 3), worth(3, 0), worth(1, -1)], [13, -2, 0, 3, 2])
"""
# Of the command's runs the first one is a try; 7, 9, 11, ... are the tests, the control and six mutants
CUT_OFF = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16)
RUNS = 1 + len(CUT_OFF) + 2 + 6


def test_a_verification_that_was_cut_off_goes_on_where_it_was_and_is_held_against_nobody(
    make_project: MakeProject,
) -> None:
    # The command kills lopen in some of its runs, which it counts outside of the tree.
    written = [("calc.py", WORTH), ("test_calc.py", TEST_WORTH)]
    files = [("write_file", {"path": path, "content": text}) for path, text in written]
    project = make_project([plan(), tools(*files, *verified("calc-t1"))], LOPEN_ORACLE__MUTATION="")
    ran, kills = project.root / ".git/ran", project.root / ".git/kills"
    kills.write_text("".join(f"{n}\n" for n in CUT_OFF))
    count = f"echo >> {ran}; if grep -qx $(wc -l < {ran}) {kills}; then kill -KILL $PPID; sleep 60; fi"
    # Without what verify-setup installs, which goes with a killed process's room, the tests would fail for any mutant.
    project.write(".gitignore", "__pycache__/\ninstalled/\n")
    project.commit("Ignore what is installed")
    setup, tests = "mkdir installed && touch installed/it", f"{count}; test -f installed/it && {UNITTEST}"
    project.specify(text=specification(commands={"verify-setup": setup, "verify-tests": tests}))
    assert project.lopen("approve", "calc", "--yes").code == 0
    long = [["tests.crash.faults:replace", "lopen.verification.extra_runs:LEAST_MUTANTS_S", 600.0]]

    codes = [project.lopen("run", "calc", arrange=long).code for _ in (*CUT_OFF, "the end")]

    assert codes == [-signal.SIGKILL] * len(CUT_OFF) + [0]
    assert project.subjects()[3:] == ["feat(calc): complete Write it in core"]
    # What passed is not run again, no request is made twice, and no circuit holds the kills against anybody.
    assert len(ran.read_text()) == RUNS
    assert (len(project.requests), len(project.oracle_requests)) == (2, 1)
    assert re.search(
        r"tests noticed \d of 6 mutants; not noticed: calc.py:2 `",
        str(project.oracle_requests[0]["messages"]),
    )
    assert project.lopen("circuit", "incidents", "--json").out == ""


LATER = ("edit_file", {"path": "calc.py", "old_text": "return a + b", "new_text": "return b + a"})


def test_an_edit_that_was_cut_off_is_made_again_where_it_left_nothing(make_project: MakeProject) -> None:
    project = make_project([plan(), tools(*code(), LATER, *verified("calc-t1"))])
    project.approve_module()
    crashed(project, "KILL", "before:lopen.files.workspace:Workspace.edit")

    ran = project.lopen("resume")

    assert ran.code == 0, ran.out + ran.err
    assert project.git("show", "lopen/calc:calc.py").endswith("return b + a")
    assert len(project.requests) == 2


NOTE = ("run_command", {"command": "echo once > note.txt"})
CUT_CALLS = {
    "after:lopen.files.workspace:Workspace.edit": LATER,
    "before:lopen.tools.workbench:Workbench.run_command": NOTE,
}


@pytest.mark.parametrize("point", CUT_CALLS)
def test_the_model_sees_that_its_call_was_cut_off_before_its_work_is_complete(
    make_project: MakeProject, point: str
) -> None:
    turn = tools(*code(), CUT_CALLS[point], *verified("calc-t1"))
    project = make_project([plan(), turn, tools(NOTE, *verified("calc-t1"))])
    project.approve_module()
    crashed(project, "KILL", point)

    ran = project.lopen("resume")

    assert ran.code == 0, ran.out + ran.err
    assert "note.txt" in project.git("ls-tree", "--name-only", "lopen/calc")
    told = str(project.requests[2]["messages"][-1])
    assert "it may have run in part or in whole" in told
    assert told.count("an earlier call of this turn was interrupted") == 2, told


def test_a_commit_that_is_not_the_intended_one_is_not_adopted(make_project: MakeProject) -> None:
    project = crashing(make_project)
    crashed(project, "KILL", "after:lopen.files.module_branch:ModuleBranch.begin")
    crashed(project, "KILL", "before:lopen.git.repository:Repository.commit")
    session = project.status()["session"]
    project.git("worktree", "add", "-q", "../mine", "lopen/calc")
    project.write("../mine/forged.py", "FORGED = True\n")
    project.git("-C", "../mine", "add", "forged.py")
    forged = f"feat(calc): complete Add in core\n\nLopen-Session: {session}\nLopen-Task: calc-t1\n"
    project.git("-C", "../mine", "commit", "-q", "-m", forged)
    project.git("worktree", "remove", "../mine")

    on = project.lopen("resume", "--json")

    assert on.code == 0, on.err
    assert not any(commit["adopted"] for commit in on.named("committed"))
    assert project.subjects()[3:] == [
        "feat(calc): complete Add in core",
        "feat(calc): complete Say it in core",
        "feat(calc): complete Print it in core",
    ]
