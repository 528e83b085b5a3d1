"""A killed run continues its conversation at the turn where it stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from tests.e2e.behaviours import write
from tests.e2e.conftest import MakeProject
from tests.endpoint import tools, verdict
from tests.fake_api import Answer
from tests.preloaded.started import StartedCommand
from tests.project import Project, code, plan, verified

Body = dict[str, Any]
TURNS = 8
JUDGING = "lopen.judge.judging:AskedJudge.verdict_on"


def slow_builder(body: Body) -> Answer:
    """Plan in one turn, then build one task in many: a file a turn, and its completion at the end."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    if any(tool["name"] == "record_tasks" for tool in body["tools"]):
        return plan()
    if turn < TURNS:
        return tools(write(f"part{turn}.py", f"N = {turn}\n"))
    return tools(*code(), *verified("calc-t1"))


def killed_at(
    body_count: int, running: list[StartedCommand], builder: Callable[[Body], Answer] = slow_builder
) -> Callable[[Body], Answer]:
    """Kill the run when that request comes, once, and answer it the next time."""
    seen = 0

    def answer(body: Body) -> Answer:
        nonlocal seen
        seen += 1
        if seen == body_count:
            os.kill(running[-1].pid, signal.SIGKILL)
            running[-1].wait(60)
        return builder(body)

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


def run_to_the_end(project: Project, running: list[StartedCommand]) -> None:
    for command in (("run", "calc"), ("resume",)):
        running.append(project.start(*command))
        running[-1].communicate(timeout=120)
        if running[-1].returncode == 0:
            return
    raise AssertionError("the run did not end")


def test_a_long_conversation_goes_on_wherever_it_is_killed(make_project: MakeProject) -> None:
    undisturbed = make_project(slow_builder, name="undisturbed")
    undisturbed.specify()
    assert undisturbed.approved_run().code == 0
    wanted = undisturbed.requests
    assert len(wanted) == TURNS + 2

    # Killed when its answer was stored, in every turn: no request is sent twice, and each is the same.
    stored = make_project(slow_builder, name="stored")
    stored.specify()
    assert stored.lopen("approve", "calc", "--yes").code == 0
    for number in range(len(wanted)):
        ran = stored.ended_at(
            "after:lopen.loop.model_calls:ModelCalls._settle", *(("resume",) if number else ("run", "calc"))
        )
        assert ran.code == -signal.SIGKILL, ran.err
    assert stored.lopen("resume").code == 0
    assert len(stored.requests) == len(wanted)
    for before, after in zip(wanted, stored.requests, strict=True):
        assert unmarked(before["messages"]) == unmarked(after["messages"])
    assert stored.git("rev-parse", "HEAD^{tree}") == undisturbed.git("rev-parse", "HEAD^{tree}")

    # Killed while it waits for an answer: that request is sent again, byte for byte.
    number = len(wanted)
    running: list[StartedCommand] = []
    project = make_project(killed_at(number, running), name="killed")
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    run_to_the_end(project, running)
    requests = project.requests
    assert len(requests) == len(wanted) + 1
    assert fixed(requests[number - 1]) == fixed(requests[number])
    assert project.git("rev-parse", "lopen/calc^{tree}") == undisturbed.git("rev-parse", "lopen/calc^{tree}")


def test_an_assumption_of_the_conversation_itself_is_no_news_when_it_goes_on(
    make_project: MakeProject,
) -> None:
    assumed = ("verify_task_completion", {"task_id": "calc-t1", "note": "Assumed: numbers are integers."})

    def builder(body: Body) -> Answer:
        if any(tool["name"] == "record_tasks" for tool in body["tools"]):
            return plan()
        if len(body["messages"]) == 1:
            return tools(*code(), ("verify_tests", {}), assumed)
        return tools(write("more.py", "N = 1\n"), *verified("calc-t1"))

    running: list[StartedCommand] = []
    wrong = verdict(False, findings=[{"severity": "error", "message": "it lacks a file"}])
    project = make_project(killed_at(3, running, builder), oracle=[wrong, verdict()])
    project.specify()
    assert project.lopen("approve", "calc", "--yes").code == 0
    run_to_the_end(project, running)
    assert fixed(project.requests[2]) == fixed(project.requests[3])


def test_files_that_changed_meanwhile_are_named(make_project: MakeProject) -> None:
    running: list[StartedCommand] = []
    project = make_project(killed_at(6, running))
    project.approve_module()
    running.append(project.start("run", "calc"))
    running[-1].communicate(timeout=120)
    (project.clone() / "part1.py").write_text("N = 100\n", "utf-8")
    (project.clone() / "part2.py").unlink()

    assert project.lopen("resume").code == 0

    killed, again = project.requests[5:7]
    assert unmarked(again["messages"][:-1]) == unmarked(killed["messages"][:-1])
    said = again["messages"][-1]["content"][-1]["text"]
    assert "Files that changed in between: part1.py, part2.py (deleted)." in said
    later = project.requests[7]["messages"]
    assert unmarked(later)[: len(again["messages"])] == unmarked(again["messages"])


def test_a_call_that_only_looks_is_run_again_without_a_word(make_project: MakeProject) -> None:
    """Killed in a read, in a test run and in a judgement: the turn goes on, and no request is spent on it."""
    looking = (("read_file", {"path": "README.md"}), *code(), *verified("calc-t1"))
    project = make_project([plan(), tools(*looking)])
    project.approve_module()
    for number, point in enumerate(
        ("lopen.files.workspace:Workspace.read", "lopen.verification.verifier:Verifier.run", JUDGING)
    ):
        ran = project.ended_at(f"before:{point}", *(("resume",) if number else ("run", "calc")))
        assert ran.code == -signal.SIGKILL, ran.err

    ran = project.resume()

    assert ran.code == 0, ran.err
    assert len(project.requests) == 2
    assert len(project.oracle_requests) == 1
