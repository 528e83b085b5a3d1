"""What a command says to do next can be done, as it stands there, and does it."""

from __future__ import annotations

import json

from tests.e2e.conftest import MakeProject
from tests.endpoint import status, tools
from tests.preloaded.shared import run_script
from tests.project import Project, build, plan, specification
from tests.ran import Ran


def pasted(project: Project, line: str) -> Ran:
    """The line as a person's shell takes it."""
    return run_script(line, project.root, project.environment())


# Merging


def test_a_branch_that_begins_on_another_module_s_is_said_and_can_begin_elsewhere(
    make_project: MakeProject,
) -> None:
    project = make_project([status(400, "no more")] * 9)
    for module in ("billing", "calc"):
        project.specify(module)
        project.git("add", "-A")
        project.git("commit", "-q", "-m", f"Specify {module}")
    first = project.approved_run("billing")
    assert "begins on" not in first.out
    project.git("switch", "-q", "lopen/billing")
    second = project.approved_run("calc")
    tip = project.git("rev-parse", "lopen/billing")[:12]
    notice = next(line for line in second.out.splitlines() if "begins on" in line)
    assert f"lopen/calc begins on lopen/billing at {tip}" in notice
    pasted(project, notice.partition("stop and: ")[2])
    assert project.git("rev-parse", "lopen/calc~1") == project.git("rev-parse", "main")


def test_a_finished_run_names_what_to_do_next_until_it_is_merged(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    ran = project.run_module()
    diff, merge, pr = (
        line.split("next:")[-1].partition("(")[0].strip() for line in ran.out.splitlines()[-3:]
    )
    assert [diff, merge, pr] == ["lopen diff calc", "lopen merge calc", "lopen pr calc"]
    for again in ("status calc", "status calc -v", "run calc"):
        assert project.lopen(*again.split()).out.splitlines()[-3:] == ran.out.splitlines()[-3:]
    assert "+def add(a, b):" in pasted(project, diff).out
    assert "Built with lopen" in pasted(project, pr).out
    done = pasted(project, merge)
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        "to delete the branch: git branch -d lopen/calc",
    )
    session = project.status()["session"]
    assert project.lopen("session", "list").out == f"{session}: complete, 1/1 tasks\n"
    for delete in ("status", "branch -d lopen/calc"):  # also where the branch is gone
        project.git(*delete.split())
        assert project.lopen("status", "calc").last_line == "lopen/calc is merged into main"
    assert "lopen/calc is merged already" in project.lopen("merge", "calc").out
    project.specify("other")
    for line, code, said in (
        ("show calk", 1, "did you mean calc?"),
        ("diff calk", 1, "did you mean calc?"),
        ("show other", 1, "other is not built yet\n  to build it: lopen run other"),
        ("diff other", 1, "other is not built yet\n  to build it: lopen run other"),
        ("show calc", 0, ""),
    ):
        shown = project.lopen(*line.split())
        assert (shown.code, said in shown.err) == (code, True), (line, shown.err)


# The branch of an earlier run that nobody merged


def test_a_new_session_goes_on_with_the_unmerged_branch(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1"), status(400, "no more")])
    project.run_module()
    tip = project.git("rev-parse", "lopen/calc")
    project.write("other.py", "1\n")
    project.git("add", "other.py")
    project.git("commit", "-q", "-m", "Move on")
    project.specify(text=specification(criteria=("add(1, 2) is 3 at once",)))

    assert "no more" in project.approved_run().err  # it came to the model

    assert project.git("rev-parse", "lopen/calc~1") == tip
    assert "at once" in project.built("specs/calc/SPECIFICATION.md")


# Pauses and refusals


def test_what_skipping_left_stuck_goes_on_with_the_command_it_names(make_project: MakeProject) -> None:
    fails = [tools(("update_task_status", {"task_id": "calc-t1", "status": "failed", "note": "no"}))] * 3
    project = make_project([plan(), *fails, plan(), build("calc-t2")])
    project.run_module(code=3)
    assert project.lopen("skip", "calc-t1", "--reason", "not now").code == 0
    stuck = project.lopen("resume")
    assert stuck.code == 3, stuck.out + stuck.err
    assert "no failures in a row" not in stuck.out + stuck.err
    assert "tasks were given up" in stuck.out
    assert stuck.last_line == "next: lopen run calc --new"
    on = pasted(project, stuck.last_line.removeprefix("next: "))
    assert on.code == 0, on.out + on.err
    assert project.status()["status"] == "complete"


# What a repository says is data


def test_a_model_that_a_repository_names_is_quoted_in_the_command(make_project: MakeProject) -> None:
    project = make_project([status(400, "no more")])
    named = json.dumps(["x'; touch PWNED; echo '", "$(touch PWNED)"])
    project.write(".lopen/config.toml", f"[models]\nfallback = {named}\n")
    project.git("add", "-f", ".lopen/config.toml")
    project.git("commit", "-q", "-m", "Configure")
    project.approve_module()
    asked = project.lopen("run", "calc")
    assert asked.code == 3
    assert "for this project only" in asked.err
    line = asked.last_line.removeprefix("next: ")
    done = pasted(project, line)
    assert done.code == 0, line + done.err
    assert not (project.root / "PWNED").exists()
    assert "no more" in project.lopen("run", "calc").err  # confirmed, and so it came to the model


# Going back


def test_revert_leaves_the_specification_and_names_no_command_that_does_nothing(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(tasks=("Write it",)), build("calc-t1")])
    project.run_module()
    edited = specification(criteria=("add(1, 2) is 3, always",))
    project.specify(text=edited)
    assert project.lopen("revert", "calc").last_line.startswith("nothing to revert")
    done = project.lopen("revert", "calc", "--to", "calc-t1")
    assert done.code == 0, done.err
    assert "lopen resume" not in done.out
    assert "no task was reopened" in done.last_line
    assert project.read("specs/calc/SPECIFICATION.md") == edited


def test_a_branch_that_was_deleted_before_its_merge_is_told_with_the_command_that_makes_it_again(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.run_module()
    tip = project.git("rev-parse", "lopen/calc")[:12]
    project.git("branch", "-q", "-D", "lopen/calc")

    status, diff, pr = (project.lopen(command, "calc") for command in ("status", "diff", "pr"))
    assert "lopen/calc does not exist any more, and its work was not merged into main" in status.out
    assert status.last_line == f"next: git branch lopen/calc {tip}"
    assert (f"git branch lopen/calc {tip}" in diff.err, "+def add(a, b):" in diff.out) == (True, True)
    assert (pr.code, f"git branch lopen/calc {tip}" in pr.err) == (1, True)

    pasted(project, status.last_line.removeprefix("next: "))
    assert project.lopen("merge").code == 0
    warned = project.lopen("revert", "calc")
    assert "lopen/calc is merged into main, which the revert leaves as it is" in warned.err


def test_commands_that_are_told_name_the_project_that_was_given(make_project: MakeProject) -> None:
    project = make_project([plan(tasks=["One", "Two"]), build("calc-t1")])
    project.specify()
    there = str(project.root)
    assert project.lopen("-C", there, "run", "calc").last_line == f"next: lopen -C {there} approve calc --run"
    project.lopen("approve", "calc", "--yes")
    ended = project.ended_at("after:lopen.loop.run:settle", "run", "calc", "-C", there, signal_name="SIGINT")
    assert f"to continue: lopen -C {there} resume calc-" in ended.out, ended.out

    assert "specification has changed" not in project.lopen("status").out
    project.specify(text=specification(extra="\n## Notes\nMore.\n"))
    assert "the specification has changed since its approval: Notes" in project.lopen("status").out
    page = project.clone() / "page.md"
    page.write_text("to build it: lopen run calc\n", "utf-8")
    assert "+to build it: lopen run calc\n" in project.lopen("-C", there, "diff", "calc").out
    unknown = project.lopen("resume", "--model", "opsu", "--max-cost", "1")
    assert (unknown.code, "did you mean opus?" in unknown.err) == (1, True), unknown.err
