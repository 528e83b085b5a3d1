"""What a turn costs beside what it cannot do without: the SDK's call, the command's process, the fsyncs."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.session import approved
from lopen.loop.iteration import begin, bench_for, conversation_for
from lopen.loop.run import iterate
from lopen.models.messages import Request
from lopen.models.request_body import body_of
from lopen.workflow.steps import Step
from tests.endpoint import tools
from tests.project import plan, specification

TURNS = 50
BATCHES = 9  # side by side with the floor, so that both see the same machine
UNLIMITED: dict[str, Any] = {
    "circuit.enabled": False,
    "budget.session_tokens": 0,
    "budget.task_tokens": 0,
    "budget.by_task_type.implement": 0,
    "workflow.record": False,
}


def rows() -> Iterator[Row]:
    """One turn with one trivial `run_command`, everything recorded durably."""
    asked = count()

    def script(_: Any) -> Any:
        n = next(asked)
        return plan() if n == 0 else tools(("run_command", {"command": f"true {n}"}))

    with approved(script, specification(), **UNLIMITED) as (loop, _), _plain_sdk() as client:
        while loop.record.journal.session.step is not Step.ITERATE_THROUGH_TASKS:
            iterate(loop)
        begin(loop, ())
        talk = conversation_for(loop, bench_for(loop))
        talk.runner.begin_turn(1)
        talk._turn()
        counted: list[str] = []
        loop.record.store.database.connection.set_trace_callback(
            lambda sql: counted.append(sql) if sql.startswith("COMMIT") else None
        )
        talk._turn()
        commits = len(counted)
        loop.record.store.database.connection.set_trace_callback(None)
        turns, floors = [], []
        for _ in range(BATCHES):
            del talk.transcript.messages[1:]
            turns.append(_each(lambda: _one_turn(talk)))
            del talk.transcript.messages[1:]
            floors.append(
                _each(
                    lambda: _floor(
                        client, talk.model.request, talk.transcript.messages, loop.project.root, commits
                    )
                )
            )
        ratio = statistics.median(turns) / statistics.median(floors)
        detail = f"{statistics.median(turns) * 1000:.1f} ms over a floor of {statistics.median(floors) * 1000:.1f} ms, {commits} commits"
        yield Row("one turn with one trivial run_command", ratio, 1.6, detail=detail)


def _one_turn(talk: Any) -> None:
    del talk.transcript.messages[1:]
    talk.runner.begin_turn(talk.counts.turn + 1)
    talk._turn()


def _each(work: Any) -> float:
    began = time.perf_counter()
    for _ in range(TURNS):
        work()
    return (time.perf_counter() - began) / TURNS


@contextmanager
def _plain_sdk() -> Iterator[Any]:
    """A client of the SDK as its documentation makes one, at the endpoint of the environment."""
    import anthropic

    with anthropic.Anthropic(max_retries=0) as client:
        yield client


def _floor(client: Any, request: Request, messages: list[Any], root: Path, commits: int) -> None:
    """The SDK's streaming call, the command's process, and as many fsyncs as a turn has commits."""
    body = body_of(replace(request, messages=tuple(messages)))
    with client.messages.stream(**body) as stream:
        stream.get_final_message()
    subprocess.run(["/bin/sh", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    file = os.open(root / ".lopen" / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(commits):
        os.write(file, b"x" * 4096)
        os.fsync(file)
    os.close(file)
