"""The gate: what opens it, what does not, and what passing it leaves in the repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lopen.cli.app import installed
from lopen.llm.fake_api.server import Answer
from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, text, tools
from tests.project import Project, build, code, plan, specification, verified
from tests.ran import HERE
from tests.terminal import on_a_terminal

SPEC = "specs/calc/SPECIFICATION.md"
LOPEN = f"{sys.executable} -m lopen"


def build_calls() -> list[tuple[str, dict[str, Any]]]:
    """The calls that do the only task."""
    return [*code(), *verified("calc-t1")]


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
        (["run", "calc"], {"LOPEN_WORKFLOW__UNATTENDED": "true", "LOPEN_WORKFLOW__MAX_CLARIFICATIONS": "0"}),
        (["plan", "calc", "--unattended"], {}),
        (["build", "calc", "--unattended"], {}),
        (["resume", "--unattended"], {}),
    ]

    for arguments, variables in tries:
        ran = project.lopen(*arguments, stdin="y\nyes\n", **variables)
        assert ran.code == 3, (arguments, ran.err)
        assert ran.last_line == "next: lopen approve calc --run"

    assert project.requests == []
    assert project.git("branch", "--format=%(refname:short)") == "main"
    assert project.git("status", "--porcelain") == "?? .lopen/\n?? specs/"


def test_an_approval_holds_for_exactly_what_was_read(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    right = spec_hash(project)
    for wrong in (right[:4], "", right[:-1] + ("0" if right[-1] != "0" else "1"), right + "0"):
        assert project.lopen("approve", "calc", "--expect", wrong).code == 1
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
    project.write("edited.md", edited)
    editor = f"cp {project.root / 'edited.md'}"
    answers = [(b"[y/N", b"e\n"), (b"add(1, 2) is 4", b""), (b"[y/N", b"y\n")]
    code, shown = on_a_terminal(project, "approve", "calc", answers=answers, EDITOR=editor)
    assert code == 0, shown

    project.specify()
    again = project.lopen("approve", "calc", "--yes")
    assert again.code == 0
    assert "since the approval of" in again.out
    assert "changed: Acceptance Criteria\n" in again.out
    assert "command verify-tests: none → " in again.out
    assert "nothing has changed" in project.lopen("approve", "calc", "--yes").out


def test_what_check_refuses_cannot_be_approved(make_project: MakeProject) -> None:
    project = make_project()
    project.specify(
        text=specification().replace("- [ ] add(1, 2) is 3\n", "").replace("## Overview", "## Over")
    )

    approved = project.lopen("approve", "calc", "--yes")
    ran = project.lopen("run", "calc")

    assert approved.code == 1
    assert "SPECIFICATION.md:10: no criteria" in approved.err
    assert "`## Overview` is missing" in approved.err
    assert ran.code == 1
    assert "lopen check calc" in ran.err
    assert project.requests == []


PERSONAL = (
    "approve calc --yes",
    "confirm {session}",
    "answer {session} yes",
    "skip calc-t1 --reason x",
    "revert calc",
    "session delete {session} --yes",
    "session prune",
    "config set budget.session_tokens 5",
    "budget extend module:calc 1000 --reason x",
    "budget reset module:calc",
    "circuit ack session:{session}",
    "circuit reset session:{session}",
    "alerts ack all",
    "hooks install",
    "hooks uninstall",
)
ESCAPES = (
    "env -i PYTHONPATH={here} {lopen} approve calc",
    "env -i PYTHONPATH={here} {lopen} config set budget.session_tokens 5",
    "cd / && env -i PYTHONPATH={here} {lopen} -C {root} approve calc",
    # From another project, whose locks nobody holds.
    "mkdir -p o/.lopen; env -i PYTHONPATH={here} {lopen} -C o config set budget.session_tokens 5; rm -r o",
    # A daemon: its parent is gone by the time it looks for one.
    "(setsid sh -c 'sleep 0.3; env -i PYTHONPATH={here} {lopen} approve calc >out 2>&1' &) ; sleep 3; cat out; rm out",
)


def test_a_session_s_own_processes_cannot_give_a_person_s_commands(make_project: MakeProject) -> None:
    known = {entry.name for entry in installed()}
    personal = [line for line in PERSONAL if line.split()[0] in known]
    project: Project

    def attack(_: dict[str, Any]) -> Answer:
        names = {
            "here": HERE,
            "lopen": LOPEN,
            "root": project.root,
            "session": project.lopen("session", "list", "--json").events[0]["session"],
        }
        direct = (f"PYTHONPATH={HERE} {LOPEN} {line}" for line in personal)
        calls = [line.format(**names) for line in (*direct, *ESCAPES)]
        return tools(("run_command", {"command": "; echo ----;".join(f"({line}) 2>&1" for line in calls)}))

    said: list[str] = []

    def built(body: dict[str, Any]) -> Answer:
        said.extend(last_result(body, "run_command").text.partition("\n")[2].split("----"))
        return build("calc-t1")

    project = make_project([plan(), attack, built])
    project.specify()

    assert project.lopen("approve", "calc", "--yes").code == 0
    ran = project.spawned("run", "calc")  # what is above a process is told by command lines

    assert ran.code == 0, ran.out + ran.err
    for line, answer in zip((*personal, *ESCAPES), said, strict=True):
        assert "is a person's command" in answer, (line, answer)
    assert len(project.subjects()) == 3
    assert not (project.root / ".lopen" / "config.toml").exists()


def test_a_dirty_tree_is_refused_with_its_files_and_nothing_changes(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.lopen("init").code == 0
    project.write("README.md", "Changed.\n")
    project.write("new.py", "x = 1\n")
    project.write("staged.py", "x = 1\n")
    project.write("__pycache__/cached.pyc", "x")
    project.git("add", "staged.py")
    before = project.git("status", "--porcelain")

    ran = project.approved_run()

    assert ran.code == 1
    named = {line.strip() for line in ran.err.splitlines()}
    assert {"README.md", "new.py", "staged.py"} <= named
    assert not any("SPECIFICATION" in line or ".lopen" in line or "cached" in line for line in named)
    assert "git stash -u" in ran.err
    assert project.git("status", "--porcelain") == before
    assert project.git("branch", "--format=%(refname:short)") == "main"
    assert project.requests == []

    project.git("add", "README.md", "new.py", "staged.py")
    project.git("commit", "-q", "-m", "Mine")
    on = project.lopen("run", "calc")
    assert on.code == 0, on.out + on.err
    assert "git switch main && git merge lopen/calc" in on.out


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
        ".lopen/.gitignore",
        "specs/calc/RESEARCH-sums.md",
        SPEC,
    ]
    assert project.git("rev-list", "--count", "main") == "1"


def test_run_with_a_prompt_drafts_a_specification_and_stops_at_the_gate(make_project: MakeProject) -> None:
    seen: list[Any] = []

    def mended(body: dict[str, Any]) -> Answer:
        seen.append(last_result(body, "write_spec").data)
        return tools(("write_spec", {"content": specification()}))

    unfit = specification().replace("## Overview", "## Over")
    project = make_project([tools(("write_spec", {"content": unfit})), mended, plan(), build("calc-t1")])
    nothing = project.lopen("run", "calc")
    assert nothing.code == 1
    assert "SPECIFICATION.md does not exist" in nothing.err

    ran = project.lopen("run", "calc", "-p", "A module that adds numbers.")

    assert (ran.code, ran.last_line) == (3, "next: lopen approve calc --run")
    assert "A module that adds numbers." in str(project.requests[0]["system"])
    assert "draft_specification" in str(project.requests[0]["system"])
    assert any("`## Overview` is missing" in problem for problem in seen[0]["problems"])
    assert project.read(SPEC) == specification()
    on = project.lopen("approve", "calc", "--yes", "--run")
    assert on.code == 0, on.out + on.err


def test_a_review_ends_with_its_turn_where_the_specification_passes(make_project: MakeProject) -> None:
    project = make_project([text("Nothing is missing. The rounding could be said more clearly.")])
    project.specify()

    ran = project.lopen("spec", "calc", "-p", "Is anything missing?")

    assert ran.code == 0, ran.out + ran.err
    assert ran.last_line == "next: lopen approve calc --run"
    assert len(project.requests) == 1


def test_a_question_while_drafting_waits_and_the_request_is_kept(make_project: MakeProject) -> None:
    question = {"question": "Whole numbers only?", "options": ["yes", "no"], "default": "yes"}
    project = make_project(
        [
            tools(("ask_user", question)),
            tools(("ask_user", {**question, "question": "Negative ones?"})),
            tools(("write_spec", {"content": specification()})),
        ]
    )

    ran = project.lopen("run", "calc", "-p", "A module that adds numbers.")

    session = project.status()["session"]
    assert (ran.code, ran.last_line) == (3, f"next: lopen answer {session} yes")
    assert "Whole numbers only?" in ran.out
    assert "Whole numbers only?" in project.lopen("resume").out  # asking again costs nothing
    assert len(project.requests) == 1
    for nothing in ("", "  "):
        empty = project.lopen("answer", session, nothing)
        assert empty.code == 2
        assert f"lopen answer {session} yes" in empty.err
    key = "ghp_" + "a1B2" * 9
    assert project.lopen("answer", session, f"maybe {key}").code == 0
    assert project.lopen("answer", session, "no").code == 0  # nothing took the first one up
    assert project.lopen("status").last_line == f"next: lopen resume {session}"
    assert "question: Whole numbers only? [yes / no]; answered: no" in project.lopen("log").out
    log = project.lopen("log", "--json").named("question_asked")
    assert [asked["answer"].partition(" ")[0] for asked in log] == ["", "maybe", "no"]
    assert key not in str(log)
    second = project.lopen("resume")
    assert second.code == 3
    assert "Negative ones?" in second.out
    told = str(project.requests[1]["system"])
    assert "Whole numbers only? The person answered: no" in told
    assert "maybe" not in told
    assert "A module that adds numbers." in told
    assert project.lopen("answer", session, "yes").code == 0
    third = project.lopen("resume")
    assert project.lopen("answer", session, "no").code == 1
    assert (third.code, third.last_line) == (3, "next: lopen approve calc --run")


def test_a_model_that_writes_no_specification_is_said_to_have_drafted_nothing(
    make_project: MakeProject,
) -> None:
    project = make_project([text("An adder, then.")] * 3)

    ran = project.lopen("spec", "calc", "-p", "A module that adds numbers.")

    assert ran.code == 1
    assert "the model drafted nothing" in ran.err
    assert "SPECIFICATION.md does not exist" in ran.err


def test_planning_may_ask_once_and_then_assumes_also_after_a_resume(make_project: MakeProject) -> None:
    asked: list[Any] = []

    def planned(body: dict[str, Any]) -> Answer:
        asked.append(last_result(body, "ask_user").data)
        return plan()

    project = make_project(
        [
            tools(("ask_user", {"question": "Which name?", "default": "calc"})),
            tools(("ask_user", {"question": "Which style?", "default": "plain"})),
            planned,
            build("calc-t1"),
        ]
    )
    project.specify()

    ran = project.approved_run()
    session = project.status()["session"]
    assert (ran.code, ran.last_line) == (3, f"next: lopen answer {session} calc")
    assert project.lopen("answer", session, "sums").code == 0
    on = project.lopen("resume")

    assert on.code == 0, on.out + on.err
    assert "Which name? The person answered: sums" in str(project.requests[1]["system"])
    assert asked == [{"ok": True, "answer": "plain", "assumed": True}]
    assert "Which style? Assumed: plain" in on.out
    assert "Which style? Assumed: plain" in project.read(".lopen/modules/calc/plan.md")
    assert project.status()["assumptions"] == ["Which style? Assumed: plain"]


def test_unattended_every_question_gets_its_default(make_project: MakeProject) -> None:
    answers: list[Any] = []

    def answered(*then: Answer) -> Any:
        def turn(body: dict[str, Any]) -> Answer:
            answers.append(last_result(body, "ask_user").data["assumed"])
            return then[0]

        return turn

    project = make_project(
        [
            tools(("ask_user", {"question": "Which name?", "default": "calc"})),
            answered(tools(("write_spec", {"content": specification()}))),
            tools(("ask_user", {"question": "Which style?", "default": "plain"})),
            answered(plan()),
            build("calc-t1"),
        ]
    )

    drafted = project.lopen("run", "calc", "-p", "adds", "--unattended")
    assert (drafted.code, drafted.last_line) == (3, "next: lopen approve calc --run")
    ran = project.approved_run("calc", "--unattended")

    assert ran.code == 0, ran.out + ran.err
    assert answers == [True, True]
    assert project.status()["assumptions"] == ["Which name? Assumed: calc", "Which style? Assumed: plain"]


def hook(project: Project, name: str, *lines: str) -> None:
    path = project.root / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


def test_the_repository_s_hooks_may_refuse_and_may_change(make_project: MakeProject) -> None:
    told: list[dict[str, Any]] = []

    def retry(*calls: tuple[str, dict[str, Any]]) -> Any:
        def turn(body: dict[str, Any]) -> Answer:
            told.append(last_result(body, "update_task_status").data)
            return tools(*calls, *verified("calc-t1"))

        return turn

    project = make_project(
        [
            plan(),
            build("calc-t1"),
            retry(("write_file", {"path": "LICENSE", "content": "Free.\n"})),
            retry(),
        ]
    )
    project.specify()
    hook(
        project,
        "pre-commit",
        "test -f LICENSE || { echo a licence is missing; exit 1; }",
        "grep -q formatted calc.py || { echo '# formatted' >> calc.py; git add calc.py; }",
    )
    hook(project, "commit-msg", 'printf "Change-Id: I123\\n" >> "$1"')

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    refused, changed = told
    assert refused["ok"] is False
    assert "a licence is missing" in refused["output"]
    assert changed["ok"] is False
    assert "stale" in changed["error"]
    assert project.read("calc.py").endswith("# formatted\n")
    assert project.subjects()[2:] == ["feat(calc): complete Write it in core"]
    body = project.git("log", "-1", "--format=%B")
    assert "Lopen-Task: calc-t1\n" in body
    assert "Change-Id: I123" in body
    assert project.git("status", "--porcelain") == ""


def test_a_hook_changed_by_the_model_is_not_the_one_that_runs(make_project: MakeProject) -> None:
    sneaky = ("run_command", {"command": "printf '#!/bin/sh\\ntouch ran-mine' > .git/hooks/pre-commit"})
    project = make_project([plan(), tools(sneaky, *build_calls())])
    project.specify()
    hook(project, "pre-commit", "exit 0")

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert not (project.root / "ran-mine").exists()
    assert "exit 0" in (project.root / ".git/hooks/pre-commit").read_text()


def test_verify_commit_must_pass_before_each_commit(make_project: MakeProject) -> None:
    told: list[dict[str, Any]] = []

    def mended(body: dict[str, Any]) -> Answer:
        told.append(last_result(body, "update_task_status").data)
        return tools(("write_file", {"path": "LICENSE", "content": "Free.\n"}), *build_calls()[2:])

    project = make_project([plan(), build("calc-t1"), mended])
    project.specify(text=specification(commands={"verify-commit": "cat LICENSE"}))

    ran = project.approved_run()

    assert ran.code == 0, ran.out + ran.err
    assert told[0]["ok"] is False
    assert "verify-commit failed" in told[0]["error"]
    assert "LICENSE" in told[0]["output"]
    assert len(project.subjects()) == 3


def test_at_a_terminal_the_gate_is_opened_there(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project([plan(), tools(("verify_docs", {}), *build_calls())])
    project.specify(text=specification(commands={"verify-docs": "test -f README.md"}))
    code, shown = on_a_terminal(project, "run", "calc", "-q", answers=[(b"[y/N]", b"y\n")])

    assert code == 0, shown.decode()
    assert b"verify-docs: test -f README.md" in shown
    assert project.subjects()[-1] == "feat(calc): complete Write it in core"
