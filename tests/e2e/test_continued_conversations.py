"""A killed run continues its conversation at the turn where it stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from lopen.llm.fake_api.server import Answer
from tests.e2e.behaviours import write
from tests.e2e.conftest import MakeProject
from tests.endpoint import last_result, tools
from tests.project import Project, code, plan, verified

Body = dict[str, Any]
TURNS = 12


def slow_builder(body: Body) -> Answer:
    """Plan in one turn, then build one task in many: a file a turn, and its completion at the end."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    if any(tool["name"] == "record_tasks" for tool in body["tools"]):
        return plan()
    if turn < TURNS:
        return tools(write(f"part{turn}.py", f"N = {turn}\n"))
    return tools(*code(), *verified("calc-t1"))


def killed_at(body_count: int, running: list[subprocess.Popen[str]]) -> Callable[[Body], Answer]:
    """Kill the run when that request comes, once, and answer it the next time."""
    seen = 0

    def answer(body: Body) -> Answer:
        nonlocal seen
        seen += 1
        if seen == body_count:
            os.kill(running[-1].pid, signal.SIGKILL)
            running[-1].wait(60)
        return slow_builder(body)

    return answer


def fixed(body: Body) -> Body:
    """What must be the same when a request is sent again."""
    return {name: body[name] for name in ("model", "system", "messages", "tools")}


def unmarked(messages: list[Body]) -> list[Body]:
    """The messages without cache marks, which move on with the conversation."""
    return [
        {**m, "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in m["content"]]}
        for m in messages
    ]


def run_to_the_end(project: Project, running: list[subprocess.Popen[str]]) -> None:
    for command in (("run", "calc"), ("resume",)):
        running.append(project.start(*command))
        running[-1].communicate(timeout=120)
        if running[-1].returncode == 0:
            return
    raise AssertionError("the run did not end")


def test_a_request_that_was_killed_is_sent_again_byte_for_byte(make_project: MakeProject) -> None:
    undisturbed = make_project(slow_builder, name="undisturbed")
    undisturbed.specify()
    assert undisturbed.approved_run().code == 0
    assert undisturbed.endpoint is not None
    wanted = len(undisturbed.endpoint.requests)
    for number in (1, 2, 3, 8, wanted):
        running: list[subprocess.Popen[str]] = []
        project = make_project(killed_at(number, running), name=f"killed{number}")
        project.specify()
        assert project.lopen("approve", "calc", "--yes").code == 0
        run_to_the_end(project, running)
        requests = project.requests
        assert len(requests) == wanted + 1
        assert fixed(requests[number - 1]) == fixed(requests[number])
        assert project.git("rev-parse", "HEAD^{tree}") == undisturbed.git("rev-parse", "HEAD^{tree}")


def test_files_that_changed_meanwhile_are_named(make_project: MakeProject) -> None:
    running: list[subprocess.Popen[str]] = []
    project = make_project(killed_at(6, running))
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    running.append(project.start("run", "calc"))
    running[-1].communicate(timeout=120)
    project.write("part1.py", "N = 100\n")
    (project.root / "part2.py").unlink()

    assert project.lopen("resume").code == 0

    killed, again = project.requests[5:7]
    assert unmarked(again["messages"][:-1]) == unmarked(killed["messages"][:-1])
    said = again["messages"][-1]["content"][-1]["text"]
    assert "Files changed since: part1.py, part2.py (deleted)." in said
    later = project.requests[7]["messages"]
    assert unmarked(later)[: len(again["messages"])] == unmarked(again["messages"])


def test_the_answer_that_came_is_kept_where_the_kill_came_after_it(make_project: MakeProject) -> None:
    """A turn is stored before its first tool runs: nothing that was answered is asked again."""
    running: list[subprocess.Popen[str]] = []
    stop = tools(("run_command", {"command": "kill -9 $PPID; sleep 60"}), write("after.py", "N = 1\n"))
    turns: list[Answer] = [plan(), stop, tools(*code(), *verified("calc-t1"))]
    project = make_project(turns)
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    run_to_the_end(project, running)
    assert len(project.requests) == 3
    assert last_result(project.requests[2], "run_command").data["interrupted"]
    assert last_result(project.requests[2], "write_file").data["ok"]
