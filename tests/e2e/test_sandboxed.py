"""What holds, and what works, in each sandbox: commands of the model, verify commands, the repository's own hooks."""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
import threading
from contextlib import suppress

import pytest

from lopen.sandbox.choice import Mode, probe
from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tools, verdict
from tests.project import Project, build, build_calls, code, plan, specification, verified
from tests.ran import SHELL_PYTHON

MODES: tuple[Mode, ...] = ("bwrap", "landlock", "none")
every_mode = pytest.mark.parametrize("mode", MODES)


def require(mode: Mode) -> Mode:
    """Skip where the mode does not work on this machine."""
    if not probe(mode).works:
        pytest.skip(f"{mode} does not work here")
    return mode


def alerts(project: Project) -> str:
    """What the session's log tells of protected paths."""
    return project.lopen("log").out


# What the repository's configuration decides


def test_no_comment_character_has_tasks_done_again(make_project: MakeProject) -> None:
    turns = [plan(tasks=("One", "Two")), build("calc-t1"), tools(*code("other"), *verified("calc-t2"))]
    project = make_project(turns)
    project.specify()
    project.git("config", "core.commentChar", "L")

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert len(project.subjects("lopen/calc")) == 4


# What only a person writes


@every_mode
def test_settings_that_a_command_writes_further_down_are_put_back(
    make_project: MakeProject, mode: Mode
) -> None:
    attempt = (
        "echo '{}' > packages/a/.claude/settings.json; mkdir -p b/.claude; echo '{}' > b/.claude/settings.json;"
        " echo HACK >> specs/calc/SPECIFICATION.md; echo 'gitdir: elsewhere' > .git; true"
    )
    project = make_project(
        [plan(), tools(("run_command", {"command": attempt})), build("calc-t1")],
        LOPEN_SANDBOX__MODE=require(mode),
    )
    project.write("packages/a/.claude/settings.json", '{"mine": 1}')
    project.git("add", "-A")
    project.git("commit", "-qm", "Settings")
    project.specify()

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert project.built("packages/a/.claude/settings.json").strip() == '{"mine": 1}'
    assert not project.holds("b/.claude/settings.json")
    assert "HACK" not in project.built("specs/calc/SPECIFICATION.md")
    assert "put back: b/.claude/settings.json, packages/a/.claude/settings.json, specs/calc" in alerts(
        project
    )


# The person's database


FLIP = """\
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=5)
c.execute("UPDATE verdicts SET body = json_set(body, '$.passed', json('true'), '$.findings', json('[]'))")
c.execute("UPDATE tasks SET state = 'complete', body = json_set(body, '$.state', 'complete')")
c.execute("DELETE FROM components")
c.commit()
"""


@pytest.mark.parametrize("mode", ["bwrap", "landlock"])
def test_a_command_does_not_reach_the_person_s_database(make_project: MakeProject, mode: Mode) -> None:
    project: Project
    turns = [
        plan(),
        lambda _: tools(
            ("write_file", {"path": "flip.py", "content": FLIP}),
            ("run_command", {"command": f"{SHELL_PYTHON} flip.py {project.root}/.lopen/state.db"}),
            ("run_command", {"command": "rm flip.py"}),
            *build_calls(),
        ),
        text("I give up"),
    ]
    refused = verdict(False, findings=[{"severity": "error", "message": "wrong"}])
    project = make_project(
        turns, oracle=refused, LOPEN_SANDBOX__MODE=require(mode), LOPEN_WORKFLOW__MAX_ITERATIONS="3"
    )
    project.specify()

    ran = project.approved_run()

    assert ran.code != 0
    assert len(project.subjects("lopen/calc")) == 2
    database = sqlite3.connect(project.root / ".lopen/state.db")
    assert database.execute("SELECT state FROM tasks").fetchall() != [("complete",)]
    assert database.execute("SELECT count(*) FROM components").fetchone() == (1,)
    database.close()


# What a verify command loads

PYTHON = shlex.quote(
    os.path.realpath(sys.executable)
)  # of no virtual environment, so that a user's packages count
PLANT = """\
import os, py_compile, site, sys
os.makedirs("__pycache__", exist_ok=True)
with open("good.py", "w") as file:
    file.write("def add(a, b):\\n    return a + b\\n")
compiled = f"__pycache__/calc.{sys.implementation.cache_tag}.pyc"
py_compile.compile("good.py", compiled, dfile="calc.py", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
os.remove("good.py")
for base in (os.environ["HOME"] + "/.local", site.getuserbase()):
    folder = f"{base}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    try:
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/usercustomize.py", "w") as file:
            file.write("import os, sys\\nif 'unittest' in sys.orig_argv:\\n    print('Ran 1 test'); os._exit(0)\\n")
    except OSError as error:
        print(error)
"""


def test_what_commands_leave_beside_the_project_passes_no_test(make_project: MakeProject) -> None:
    plant = ("run_command", {"command": f"{PYTHON} plant.py; rm plant.py"})
    wrong = code(value="0")
    turns = [
        plan(),
        tools(("write_file", {"path": "plant.py", "content": PLANT}), plant, *wrong, *verified("calc-t1")),
        text("I give up"),
    ]
    project = make_project(turns, LOPEN_SANDBOX__MODE=require("bwrap"), LOPEN_WORKFLOW__MAX_ITERATIONS="2")
    project.specify(text=specification(commands={"verify-tests": f"{PYTHON} -m unittest -q"}))

    ran = project.approved_run()

    assert ran.code != 0
    assert len(project.subjects("lopen/calc")) == 2
    assert "FAILED" in str(project.requests[-1] if project.endpoint else "")


# What a killed run leaves


@every_mode
def test_commands_of_a_killed_run_are_ended_before_anything_else_runs(
    make_project: MakeProject, mode: Mode
) -> None:
    reading = ("run_command", {"command": "mkfifo pipe; cat pipe > late.txt & wait"})
    ending = ("run_command", {"command": "rm -f pipe late.txt"})
    project = make_project(
        [plan(), tools(reading), tools(ending, *build_calls())], LOPEN_SANDBOX__MODE=require(mode)
    )
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    process = project.start("run", "calc")
    writing = None
    while writing is None:  # until the command reads
        assert process.poll() is None
        threading.Event().wait(0.02)
        with suppress(OSError):
            writing = os.open(project.clone() / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    process.kill()
    process.communicate()

    ran = project.resume()

    assert ran.code == 0, ran.out + ran.err
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"late")
    os.close(writing)
    assert ("had left running" in ran.out) == (mode != "bwrap")
