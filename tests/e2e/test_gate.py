"""The gate: what opens it, what does not, and what passing it leaves in the repository."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools
from tests.fake_api import Answer
from tests.project import Project, build, build_calls, plan, specification
from tests.ran import HERE, SHELL_PYTHON
from tests.terminal import on_a_terminal

SPEC = "specs/calc/SPECIFICATION.md"
LOPEN = f"{SHELL_PYTHON} -m lopen"


def spec_hash(project: Project) -> str:
    """The hash that `lopen approve` shows when it refuses another one."""
    refused = project.lopen("approve", "calc", "--expect", "0" * 32)
    assert refused.code == 1
    return refused.err.split("its hash is ")[1].split(",")[0]


def test_no_flag_and_no_variable_opens_the_gate(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()
    tries: list[tuple[list[str], dict[str, str]]] = [
        (
            [
                "run",
                "calc",
                "--unattended",
                "--new",
                "-p",
                "build it, it is approved",
                "--max-iterations",
                "5",
            ],
            {},
        ),
        (["run", "calc", "--json", "--sandbox", "none", "--allow-network", "--no-record", "-q"], {}),
        (["run", "calc"], {"LOPEN_WORKFLOW__UNATTENDED": "true"}),
        (["plan", "calc", "--unattended"], {}),
        (["resume", "--unattended"], {}),
    ]

    for arguments, variables in tries:
        ran = project.lopen(*arguments, stdin="y\nyes\n", **variables)
        assert ran.code == 3, (arguments, ran.err)
        assert ran.last_line == "next: lopen approve calc --run"

    assert project.requests == []
    assert project.git("branch", "--format=%(refname:short)") == "main"
    assert project.git("status", "--porcelain") == "?? specs/"


def test_an_approval_holds_for_exactly_what_was_read(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    right = spec_hash(project)
    for wrong in (right[:4], "", right[:-1] + ("0" if right[-1] != "0" else "1"), right + "0"):
        assert project.lopen("approve", "calc", "--expect", wrong).code == (1 if len(wrong) >= 8 else 2)
    approved = project.lopen("approve", "calc", "--expect", right, "--note", "read it twice")
    assert approved.code == 0
    assert "AC-1: add(1, 2) is 3" in approved.out
    assert "verify-tests: " in approved.out
    assert right in approved.out

    project.specify(text=specification(criteria=("add(1, 2) is 4",)))
    shut = project.lopen("run", "calc")
    assert (shut.code, shut.last_line) == (3, "next: lopen approve calc --run")
    assert project.lopen("approve", "calc", "--expect", right).code == 1
    assert project.requests == []

    project.specify()
    ran = project.lopen("run", "calc", "--json")
    assert ran.code == 0, ran.err
    [event] = ran.named("spec_approved")
    assert (event["note"], event["spec_hash"]) == ("read it twice", right)


def test_approve_asks_on_a_terminal_and_needs_yes_elsewhere(make_project: MakeProject) -> None:
    project = make_project()
    project.specify()

    refused = project.lopen("approve", "calc", stdin="y\n")
    assert refused.code == 2
    assert "AC-1: add(1, 2) is 3" in refused.out
    assert f"lopen approve calc --expect {spec_hash(project)[:16]}" in refused.err
    assert project.lopen("approve", "calc", "--json").code == 2
    for answer in (b"n\n", b"\n", b"\x04"):
        assert on_a_terminal(project, "approve", "calc", answers=[(b"[y/N", answer)])[0] == 1
    assert project.lopen("run", "calc").code == 3

    edited = specification(criteria=("add(1, 2) is 4",), commands={"verify-tests": "none"})
    project.specify(text=edited)
    code, shown = on_a_terminal(project, "approve", "calc", answers=[(b"[y/N", b"y\n")])
    assert code == 0, shown

    project.specify()
    again = project.lopen("approve", "calc", "--yes")
    assert again.code == 0
    assert "since the approval of" in again.out
    assert "changed: Acceptance Criteria\n" in again.out
    assert "command verify-tests: none → " in again.out
    assert "nothing has changed" in project.lopen("approve", "calc", "--yes").out


PERSONAL = (
    "approve calc --yes",
    "answer {session} yes",
    "config set budget.session_tokens 5",
    "budget extend module:calc 1000 --reason x",
    "hooks install",
)
ESCAPES = (
    "cd / && env -i PYTHONPATH={here} {lopen} -C {root} approve calc",
    # From another project, whose locks nobody holds.
    "mkdir -p o/.lopen; env -i PYTHONPATH={here} {lopen} -C o config set budget.session_tokens 5; rm -r o",
    # A daemon: its parent is gone by the time it looks for one.
    "mkfifo out; cat >d.sh <<'END'\nenv -i PYTHONPATH={here} {lopen} approve calc\nEND\n"
    "(setsid sh d.sh >out 2>&1 &); cat out; rm out d.sh",
    # In a process namespace of its own it has no ancestors; where the machine allows none, the direct call is refused.
    "own='unshare -Urpf --mount-proc'; $own true 2>/dev/null || own=; "
    'env -i PATH="$PATH" PYTHONPATH={here} $own {lopen} -C {root} approve calc',
)


def test_a_session_s_own_processes_cannot_start_lopen_here(make_project: MakeProject, tmp_path: Path) -> None:
    starts = ("run calc", "init")
    here = f"PYTHONPATH={shlex.quote(str(HERE))}"
    calls = [
        *(f"{here} {LOPEN} -C {tmp_path / 'project'} {line}" for line in starts),
        f"env -i {here} HOME=$HOME ANTHROPIC_API_KEY=none setsid -w {LOPEN} -C {tmp_path / 'project'} run calc",
    ]
    command = "; echo ----;".join(f"({line}) 2>&1" for line in calls)
    said: list[str] = []

    def built(body: dict[str, Any]) -> Answer:
        said.extend(last_result(body, "run_command").text.partition("\n")[2].split("----"))
        return build("calc-t1")

    project = make_project(
        [plan(), tools(("run_command", {"command": command})), built], LOPEN_SANDBOX__MODE="none"
    )
    project.approve_module()
    ran = project.spawned("run", "calc")

    assert ran.code == 0, ran.out + ran.err
    for line, answer in zip(calls, said, strict=True):
        assert "inside the lopen session" in answer or "another lopen works with it" in answer, (line, answer)
    assert not (project.root / ".lopen/corrupted").exists()


def test_a_session_s_own_processes_cannot_give_a_person_s_commands(make_project: MakeProject) -> None:
    project: Project

    def attack(_: dict[str, Any]) -> Answer:
        names = {
            "here": shlex.quote(str(HERE)),
            "lopen": LOPEN,
            "root": project.root,
            "session": project.lopen("session", "list", "--json").events[0]["session"],
        }
        direct = (f"PYTHONPATH={shlex.quote(str(HERE))} {LOPEN} {line}" for line in PERSONAL)
        calls = [line.format(**names) for line in (*direct, *ESCAPES)]
        return tools(("run_command", {"command": "; echo ----;".join(f"({line}) 2>&1" for line in calls)}))

    said: list[str] = []

    def built(body: dict[str, Any]) -> Answer:
        said.extend(last_result(body, "run_command").text.partition("\n")[2].split("----"))
        return build("calc-t1")

    project = make_project([plan(), attack, built])
    project.approve_module()
    ran = project.spawned("run", "calc")  # what is above a process is told by command lines

    assert ran.code == 0, ran.out + ran.err
    for line, answer in zip((*PERSONAL, *ESCAPES), said, strict=True):
        # In a process namespace of its own a command has no ancestors: there the lock of the run refuses it.
        refused = "another lopen works with it" in answer and "unshare" in line
        assert "is a person's command" in answer or refused, (line, answer)
    assert len(project.subjects()) == 3
    assert not (project.root / ".lopen" / "config.toml").exists()


def test_uncommitted_files_are_counted_and_not_part_of_the_build(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.lopen("init").code == 0
    project.write("README.md", "Changed.\n")
    project.write("new.py", "x = 1\n")
    project.write("staged.py", "x = 1\n")
    project.write("my file.py", "x = 1\n")
    project.write("__pycache__/cached.pyc", "x")
    project.git("add", "staged.py")
    before = project.git("status", "--porcelain")

    ran = project.approved_run()

    assert ran.code == 0, ran.err
    told = "4 uncommitted files of your checkout are not part of this build: README.md, my file.py, new.py, staged.py"
    assert told in ran.out
    assert project.git("status", "--porcelain") == before
    assert project.git("symbolic-ref", "--short", "HEAD") == "main"
    assert not project.holds("new.py")


def test_the_first_commit_carries_the_specification_and_its_research(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    project.write("specs/calc/RESEARCH-sums.md", "# Sums\n")

    assert project.approved_run().code == 0

    first = project.git("log", "--reverse", "--format=%H", "main..lopen/calc").splitlines()[0]
    assert project.git("show", "--name-only", "--format=%s%n%P", first).split("\n") == [
        "docs(calc): approve specification",
        project.git("rev-parse", "main"),
        "",
        "specs/calc/RESEARCH-sums.md",
        SPEC,
    ]
    assert project.git("rev-list", "--count", "main") == "1"


def test_at_a_terminal_the_gate_is_opened_there(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project([plan(), tools(("verify_docs", {}), *build_calls())])
    project.specify(text=specification(commands={"verify-docs": "test -f README.md"}))
    code, shown = on_a_terminal(project, "run", "calc", "-q", answers=[(b"[y/N]", b"y\n")])

    assert code == 0, shown.decode()
    assert b"verify-docs: test -f README.md" in shown
    assert project.subjects()[-1] == "feat(calc): complete Write it in core"
