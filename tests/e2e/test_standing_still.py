"""What `lopen status` says of a session that stands still: why, as its run said it, and what goes on."""

from __future__ import annotations

import signal

from tests.e2e.conftest import MakeProject
from tests.endpoint import Message, silence, status, tools
from tests.project import Project, build, plan


def last_lines(project: Project, *arguments: str) -> list[str]:
    shown = project.lopen("status", *arguments)
    assert shown.code == 0, shown.err
    return shown.out.splitlines()


def failing(task: str) -> Message:
    return tools(("update_task_status", {"task_id": task, "status": "failed", "note": "cannot"}))


def test_after_a_failure_it_says_the_cause_how_to_mend_it_and_the_command(make_project: MakeProject) -> None:
    project = make_project([status(401, "invalid x-api-key")])
    project.specify()
    failed = project.approved_run()
    assert failed.code == 1
    *_, cause, mend, command = last_lines(project, "calc")
    assert f"failed: {failed.err.splitlines()[0].removeprefix('lopen: ')}" == cause
    assert "ANTHROPIC_API_KEY" in mend
    assert command == f"next: lopen resume {project.status()['session']}"
    assert project.status()["failure"]["cause"] == cause.removeprefix("failed: ")


def test_after_a_killed_run_it_says_so_but_not_while_one_works(make_project: MakeProject) -> None:
    project = make_project([plan(), silence()])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    process = project.start("run", "calc", "--json")
    assert process.stdout is not None
    for line in process.stdout:
        if '"iteration_started"' in line and '"iterate_through_tasks"' in line:
            break
    assert not any(line.startswith("next: ") for line in last_lines(project))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    *_, cause, command = last_lines(project)
    assert "was interrupted" in cause
    assert command.startswith("next: lopen resume calc-")
    followed = project.lopen("log", "-f")  # it ends, for nothing more will happen
    assert followed.code == 0
    assert f"was interrupted; everything up to then is saved; {command}" in followed.err
    assert project.lopen("resume", LOPEN_MODEL__BASE_URL="nowhere").code == 2
    assert last_lines(project)[-2:] == [cause, command]  # what was refused changes nothing


def test_a_task_that_was_given_up_is_not_counted_as_failing(make_project: MakeProject) -> None:
    project = make_project([plan(), *(failing("calc-t1") for _ in range(3))])
    project.specify()
    assert project.approved_run().code == 3
    assert any("(failed 3 in a row)" in line for line in last_lines(project))
    assert last_lines(project)[-1].startswith("next: lopen confirm ")
    assert project.lopen("skip", "calc-t1", "--reason", "no use").code == 0
    shown = last_lines(project)
    assert any("(skipped: no use)" in line for line in shown)
    assert not any("in a row" in line and "calc-t1" in line for line in shown)
    assert shown[-1] == f"next: lopen resume {project.status()['session']}"


def test_a_complete_session_stands_in_no_step_and_waits_for_nothing(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    assert project.approved_run().code == 0
    shown = last_lines(project)
    assert shown[0].startswith("calc: complete ")
    assert not any(line.startswith(("step ", "next: lopen resume", "waits")) for line in shown)
    assert project.status()["failure"] is None


def test_after_a_revert_it_stands_in_a_step_that_there_is(make_project: MakeProject) -> None:
    project = make_project([plan(tasks=("One", "Two")), build("calc-t1"), build("calc-t2")])
    project.specify()
    project.approved_run()
    assert project.lopen("revert", "calc", "--to", "calc-t1").code == 0
    assert project.status()["step"] in {"select_next_component", "iterate_through_tasks"}
    assert not any(line.startswith("step 8") for line in last_lines(project))
