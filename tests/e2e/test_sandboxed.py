"""What holds, and what works, in each sandbox: commands of the model, verify commands, the repository's own hooks."""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from lopen.sandbox.choice import Mode, probe
from tests.e2e.conftest import MakeProject
from tests.endpoint import text, tools, verdict
from tests.project import Project, build, code, plan, specification, verified

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


def write_hook(project: Project, name: str, line: str) -> Path:
    file = project.write(f".git/hooks/{name}", f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
    return file


# What the repository's configuration decides


def test_no_comment_character_has_tasks_done_again(make_project: MakeProject) -> None:
    turns = [plan(tasks=("One", "Two")), build("calc-t1"), tools(*code("other"), *verified("calc-t2"))]
    project = make_project(turns)
    project.specify()
    project.git("config", "core.commentChar", "L")

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert len(project.subjects("lopen/calc")) == 4


# What would run later, outside of any sandbox


@every_mode
def test_a_git_folder_elsewhere_in_the_project_is_guarded(make_project: MakeProject, mode: Mode) -> None:
    attempt = "git config core.fsmonitor evil; echo evil > meta.git/hooks/post-commit; true"
    if mode == "bwrap":  # elsewhere a repository that was moved away ends the run
        attempt += "; mv meta.git aside; mkdir meta.git; echo evil > .git; true"
    project = make_project(
        [plan(), tools(("run_command", {"command": attempt})), build("calc-t1")],
        LOPEN_SANDBOX__MODE=require(mode),
    )
    (project.root / ".git").rename(project.root / "meta.git")
    project.write(".git", "gitdir: meta.git\n")
    project.write(".gitignore", "__pycache__/\nmeta.git/\naside/\n")
    project.git("commit", "-qam", "Ignore")
    project.specify()

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert "evil" not in project.read("meta.git/config")
    assert not (project.root / "meta.git/hooks/post-commit").exists()
    assert project.read(".git") == "gitdir: meta.git\n"


@every_mode
def test_what_is_planted_in_a_submodule_does_not_stay(
    make_project: MakeProject, mode: Mode, tmp_path: Path
) -> None:
    attempt = (
        "mkdir planted; cp -r .git/modules/sub/. planted; git config --file planted/config core.fsmonitor evil;"
        " rm -f sub/.git; echo 'gitdir: ../planted' > sub/.git; mv sub away; mkdir sub; cp away/.git sub/;"
        " git config --file .git/modules/sub/config core.fsmonitor evil; git init -q empty;"
        " echo '{}' > packages/a/.claude/settings.json; rm -r away; rm -r planted; true"
    )
    project = make_project(
        [plan(), tools(("run_command", {"command": attempt})), build("calc-t1")],
        LOPEN_SANDBOX__MODE=require(mode),
    )
    library = tmp_path / "library"
    project.git("clone", "-q", ".", str(library))
    for name in ("sub", "empty"):
        project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), name)
    project.write("packages/a/.claude/settings.json", '{"mine": 1}')
    project.git("add", "-A")
    project.git("commit", "-qm", "Submodules")
    project.git("submodule", "deinit", "-q", "-f", "empty")
    project.specify()

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert project.read("sub/.git") == "gitdir: ../.git/modules/sub\n"
    assert "evil" not in project.read(".git/modules/sub/config")
    assert not (project.root / "empty/.git/HEAD").exists()
    assert project.read("packages/a/.claude/settings.json") == '{"mine": 1}'
    assert "put back" in alerts(project)


def test_settings_that_a_command_adds_further_down_are_not_committed(make_project: MakeProject) -> None:
    attempt = "mkdir -p packages/a/.claude; echo '{}' > packages/a/.claude/settings.json"
    mended = ("run_command", {"command": "rm -r packages"})
    turns = [
        plan(),
        tools(("run_command", {"command": attempt}), *code(), *verified("calc-t1")),
        tools(mended, *verified("calc-t1")),
    ]
    project = make_project(turns)
    project.specify()

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert "packages" not in project.git("log", "--name-only", "--format=", "lopen/calc")
    assert "packages/a/.claude/settings.json: the person" in str(project.requests[-1])


# What a command says of the session, by itself


FLIP = """\
import sqlite3
c = sqlite3.connect(".lopen/state.db", timeout=5)
c.execute("UPDATE verdicts SET body = json_set(body, '$.passed', json('true'), '$.findings', json('[]'))")
c.execute("UPDATE tasks SET state = 'complete', body = json_set(body, '$.state', 'complete')")
c.execute("UPDATE sessions SET body = json_set(body, '$.iterations_granted', 100000)")
c.execute("DELETE FROM components")
c.commit()
"""


@pytest.mark.parametrize("mode", ["landlock", "none"])
def test_what_a_command_writes_to_the_database_decides_nothing(make_project: MakeProject, mode: Mode) -> None:
    flip = ("run_command", {"command": f"{sys.executable} flip.py"})
    turns = [
        plan(),
        tools(("write_file", {"path": "flip.py", "content": FLIP}), *code(), *verified("calc-t1")[:2]),
        tools(flip, *verified("calc-t1")),
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
    assert "wrote to lopen's database; put back: sessions, components, tasks, verdicts" in alerts(project)
    database = sqlite3.connect(project.root / ".lopen/state.db")
    assert database.execute("SELECT state FROM tasks").fetchall() != [("complete",)]
    assert database.execute("SELECT count(*) FROM components").fetchone() == (1,)
    database.close()


@pytest.mark.parametrize("mode", ["landlock", "none"])
def test_tables_that_a_command_adds_to_end_the_run(make_project: MakeProject, mode: Mode) -> None:
    line = "CREATE TRIGGER t AFTER INSERT ON verdicts BEGIN UPDATE verdicts SET body = 'x'; END"
    attempt = f'{sys.executable} -c \'import sqlite3; sqlite3.connect(".lopen/state.db").execute("{line}")\''
    turns = [plan(), tools(("run_command", {"command": attempt.replace("= 'x'", "= 1")})), build("calc-t1")]
    project = make_project(turns, LOPEN_SANDBOX__MODE=require(mode))
    project.specify()

    ran = project.approved_run()

    assert ran.code != 0
    assert "is not trustworthy any more" in ran.err
    assert "--new" in ran.err
    assert len(project.subjects("lopen/calc")) == 2


# What a verify command loads

PYTHON = os.path.realpath(sys.executable)  # of no virtual environment, so that a user's packages count
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
    turns = [plan(), tools(("run_command", {"command": "cat pipe > late.txt & wait"})), build("calc-t1")]
    project = make_project(turns, LOPEN_SANDBOX__MODE=require(mode))
    os.mkfifo(project.root / "pipe")
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    process = project.start("run", "calc")
    writing = None
    while writing is None:  # until the command reads
        assert process.poll() is None
        threading.Event().wait(0.02)
        with suppress(OSError):
            writing = os.open(project.root / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    process.kill()
    process.communicate()

    ran = project.resume()

    assert ran.code == 0, ran.out + ran.err
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"late")
    os.close(writing)
    assert ("had left running" in ran.out) == (mode != "bwrap")


# The repository's own hooks


@every_mode
def test_commit_hooks_write_where_git_lets_them(make_project: MakeProject, mode: Mode) -> None:
    project = make_project([plan(), build("calc-t1")], LOPEN_SANDBOX__MODE=require(mode))
    write_hook(
        project,
        "pre-commit",
        "git add -u && test ! -e .lopen/cache/hooks/left && echo x > .lopen/cache/hooks/left",
    )
    write_hook(project, "commit-msg", 'echo "Change-Id: I123" >> "$1"')
    project.specify()
    left = project.write(".lopen/cache/hooks/left", "from before")

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert "Change-Id: I123" in project.git("log", "-1", "--format=%B", "lopen/calc")
    assert left.read_text() == "x\n"


def test_only_a_hook_writes_to_the_hooks_scratch(make_project: MakeProject) -> None:
    attempt = ("run_command", {"command": "echo x > .lopen/cache/hooks/planted"})
    project = make_project([plan(), tools(attempt), build("calc-t1")], LOPEN_SANDBOX__MODE=require("bwrap"))
    write_hook(project, "pre-commit", "true")
    project.specify()

    assert project.approved_run().code == 0
    assert not (project.root / ".lopen/cache/hooks/planted").exists()


@every_mode
def test_what_commands_leave_unseen_is_told_and_what_runs_by_itself_is_removed(
    make_project: MakeProject, mode: Mode
) -> None:
    plant = (
        "mkdir -p .vscode hidden sub/.git/hooks; echo '{}' > .vscode/tasks.json; echo data > hidden/data; "
        "echo import evil > hidden/evil.pth; echo x > hidden/gone.pyc; echo evil >> hidden/mine.pth; "
        "git init -q nested; git -C nested config core.fsmonitor evil; echo evil > nested/.git/hooks/post-commit; "
        "cp -r nested/.git bare; echo raise SystemExit > nested/sitecustomize.py"
    )
    project = make_project(
        [plan(), tools(("run_command", {"command": plant})), build("calc-t1")],
        LOPEN_SANDBOX__MODE=require(mode),
    )
    project.write(".gitignore", "__pycache__/\n.vscode/\nhidden/\nbare/\n*.pyc\n")
    project.git("commit", "-qam", "Ignore")
    project.write("hidden/mine.pth", "# mine\n")
    project.write("hidden/old.pth", "# mine\n")
    project.specify()

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    kept = {str(path.relative_to(project.root)) for path in project.root.rglob("*") if path.is_file()}
    assert kept >= {"hidden/data", "hidden/mine.pth", "hidden/old.pth", "nested/.git/HEAD", "bare/HEAD"}
    gone = {
        ".vscode/tasks.json",
        "hidden/evil.pth",
        "hidden/gone.pyc",
        "nested/.git/hooks/post-commit",
        "nested/.git/config",
        "nested/sitecustomize.py",
        "bare/hooks/post-commit",
        "bare/config",
    }
    assert kept & gone == set()
    told = (ran.out + ran.err).replace("\n", " ")
    assert all(path in told for path in gone), told
    assert "nested repositories, which no commit contains: bare, nested" in told
    assert "files that git ignores: hidden/" in told


# What verify-setup reaches


@every_mode
def test_setup_with_changed_dependencies_asks_where_it_reaches_the_machine(
    make_project: MakeProject, mode: Mode
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.setblocking(False)
        evil = f"import socket; socket.socket().connect_ex({service.getsockname()!r})\n"
        changed = tools(("write_file", {"path": "setup.py", "content": evil}), *verified("calc-t1"))
        project = make_project(
            [plan(), tools(*code("calc")), changed, tools(*verified("calc-t1"))],
            LOPEN_SANDBOX__MODE=require(mode),
        )
        project.write("setup.py", "\n")
        project.git("add", "-A")
        project.git("commit", "-qm", "Dependencies")
        setup = f"{sys.executable} setup.py"
        project.specify().write_text(specification(commands={"verify-setup": setup}))

        ran = project.approved_run()

        with pytest.raises(BlockingIOError):
            service.accept()
        if mode == "bwrap":
            assert ran.code == 0, ran.out + ran.err
            return
        assert ran.code == 3, ran.out + ran.err
        assert "dependency files" in ran.out + ran.err
        assert project.lopen("confirm", project.status()["session"]).code == 0
        resumed = project.resume()
        assert resumed.code == 0, resumed.out + resumed.err
        service.accept()[0].close()
