"""What going on with a long session costs before its first request, beside going on with a short one."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.session import home
from bench.startup import LOPEN, processor_ms
from lopen.application.approval import record, specification
from lopen.application.command_context import CommandContext
from lopen.application.open_store import cleaned, open_store
from lopen.cli.command import TerminalPresentation
from lopen.models.messages import Usage
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Plan, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.endpoint import ScriptedEndpoint, Turn, status, tools
from tests.project import Project, plan
from tests.project import specification as text

TASKS, CALLS, COMPONENTS = 10_000, 1_000_000, 100
TURNS = 200
RUNS = 11
NOW = datetime(2026, 1, 1, tzinfo=UTC)
BRANCH = "lopen/calc"


def rows() -> Iterator[Row]:
    """From the command's start to the first request, in milliseconds over a session with one task."""
    with home() as folder:
        few = _Resumed(folder / "short", tasks=1, calls=10)
        many = _Resumed(folder / "long", tasks=TASKS, calls=CALLS)
        called = _Resumed(folder / "called", tasks=1, calls=CALLS)
        os.sync()  # what making them wrote is not to be waited for
        yield from _shown(few, called)
        pairs = [(few.seconds(), many.seconds()) for _ in range(RUNS + 1)][1:]  # the first one warms caches
        floor, measured = (statistics.median(column) for column in zip(*pairs, strict=True))
        more = statistics.median(long - short for short, long in pairs)  # both of a pair see the same machine
        detail = f"{measured * 1000:.0f} ms against {floor * 1000:.0f} ms"
        name = f"resume with {TASKS:,} tasks and {CALLS:,} calls, over start-up"
        yield Row(name, more * 1000, 400, unit="ms", detail=detail)
        fresh, talked = _Conversing(folder / "fresh", 0), _Conversing(folder / "talked", TURNS)
        pairs = [(fresh.seconds(), talked.seconds()) for _ in range(RUNS + 1)][1:]
        more = statistics.median(long - short for short, long in pairs)
        yield Row(
            f"resume into a conversation of {TURNS} turns, over a fresh one", more * 1000, 300, unit="ms"
        )


def _shown(few: _Project, called: _Project) -> Iterator[Row]:
    """The processor time of looking at a session after a million calls, over after ten."""
    for words in (("status",), ("log", "-n", "10")):
        pairs = [(few.looked_ms(*words), called.looked_ms(*words)) for _ in range(RUNS + 1)][1:]
        short, long = (statistics.median(column) for column in zip(*pairs, strict=True))
        detail = f"{long:.0f} ms against {short:.0f} ms"
        yield Row(
            f"lopen {' '.join(words)} after {CALLS:,} calls, over after 10", long / short, 1.3, detail=detail
        )


class _Project:
    """A project and the moment at which a command's first request came."""

    def __init__(self, root: Path, **variables: str) -> None:
        self._asked: list[float] = []
        self._project = Project(root, None, LOPEN_SANDBOX__MODE="none", **variables)
        self._project.specify(text=text())

    def _answer(self, _: Any) -> Any:
        self._asked.append(time.monotonic())
        return status(401, "enough")

    def looked_ms(self, *words: str) -> float:
        """Return the processor time of `lopen WORDS` in milliseconds."""
        return processor_ms((*LOPEN, *words), self._project.root, self._project.environment())

    def seconds(self) -> float:
        """From the start of `lopen resume` to its first request."""
        self._asked.clear()
        with ScriptedEndpoint(self._answer) as endpoint:
            began = time.monotonic()
            ran = self._project.spawned("resume", **endpoint.environment)
        assert self._asked, ran.err
        return self._asked[0] - began


class _Conversing(_Project):
    """A project whose session was cut off in the conversation of its only task, after so many turns."""

    def __init__(self, root: Path, turns: int) -> None:
        unlimited = {"LOPEN_BUDGET__SESSION_TOKENS": "0", "LOPEN_BUDGET__TASK_TOKENS": "0"}
        super().__init__(root, CIRCUIT_BREAKER_ENABLED="false", **unlimited)
        few = Usage(100, 10)
        script: list[Turn] = [
            plan(),
            *(tools(_write(n), usage=few) for n in range(turns)),
            status(401, "enough"),
        ]
        with ScriptedEndpoint(script) as endpoint:
            assert self._project.lopen("approve", "calc", "--yes").code == 0
            ran = self._project.lopen("run", "calc", **endpoint.environment)
        assert (ran.code, endpoint.left) == (1, 0), ran.err


def _write(n: int) -> tuple[str, dict[str, Any]]:
    """A call that writes 4 KB."""
    return "write_file", {"path": f"part{n}.py", "content": f"NUMBER = {n:04}\n" * 280}


class _Resumed(_Project):
    """A project whose session stands before its last task."""

    def __init__(self, root: Path, *, tasks: int, calls: int) -> None:
        super().__init__(root)
        context = CommandContext(root, presentation=TerminalPresentation())
        store = open_store(context, new=True)
        record(store, specification(root, store, "calc"), "")
        approval = store.approval("calc")
        assert approval is not None
        self._project.git("add", "-A")
        self._project.git("commit", "-q", "-m", "Specify")
        session = Session(
            "calc-20260101-1",
            "calc",
            NOW,
            step=Step.ITERATE_THROUGH_TASKS,
            approval=approval,
            branch=BRANCH,
            start_branch="main",
            start_commit=self._project.git("rev-parse", "HEAD"),
        )
        commits = _committed(self._project, session.id, tasks - 1)
        tree = _tree(tasks, commits)
        plan = Plan(
            dependencies=(),
            tree=tree,
            selected=tree.components[-1].id,
            sections=dict(approval.sections),
            criteria={"AC-1": "add(1, 2) is 3"},
            original_scope=COMPONENTS,
            planned_tasks=tasks,
        )
        session = replace(session, plan=plan)
        store.save(session, NOW)
        _called(store, session.id, calls)
        store.database.close()
        cleaned(
            context
        )  # a session that recorded its calls itself moved them to its archives, a part an iteration


def _committed(project: Project, session: str, count: int) -> list[str]:
    """One commit a task on the module's branch, with lopen's trailers; their ids."""
    start = project.git("rev-parse", "HEAD")
    project.git("update-ref", f"refs/heads/{BRANCH}", start)
    stream = b"".join(_commit(session, n, start) for n in range(1, count + 1))
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        cwd=project.root,
        input=stream,
        check=True,
        env=project.environment(),
    )
    project.git("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    project.git("reset", "-q", "--hard")
    return project.git("rev-list", "--reverse", f"{start}..HEAD").splitlines()


def _commit(session: str, n: int, start: str) -> bytes:
    text = f"feat(calc): complete Task {n} in C\n\nLopen-Session: {session}\nLopen-Task: calc-t{n}\nLopen-Verdict: passed (high)\n"
    parent = f"from {start}\n" if n == 1 else ""
    file = f"parts/{n % 100}.txt"
    return (
        f"commit refs/heads/{BRANCH}\ncommitter B <b@example.invalid> {1_700_000_000 + n} +0000\n"
        f"data {len(text)}\n{text}\n{parent}M 644 inline {file}\ndata {len(str(n))}\n{n}\n"
    ).encode()


def _tree(tasks: int, commits: list[str]) -> TaskTree:
    """All tasks complete but the last."""
    every = [
        Task(
            f"calc-t{n + 1}",
            f"Task {n + 1}",
            f"What task {n + 1} is about, in a sentence.",
            state=State.COMPLETE if n < len(commits) else State.PENDING,
            commit=commits[n] if n < len(commits) else None,
        )
        for n in range(tasks)
    ]
    each = max(1, tasks // COMPONENTS)
    groups = [tuple(every[at : at + each]) for at in range(0, tasks, each)]
    return TaskTree(
        tuple(
            Component(
                f"c{n}",
                f"Component {n}",
                criteria=("AC-1",),
                tasks=group,
                broken_down=True,
                verified=n < len(groups) - 1,
            )
            for n, group in enumerate(groups)
        )
    )


def _called(store: SessionStore, session: str, count: int) -> None:
    """Tool calls as the audit trail has them."""
    arguments = json.dumps({"path": "src/module/file.py", "offset": 1, "limit": 200})
    with store.database.transaction() as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO tool_calls (session, iteration, turn, task, tool, arguments, started_at, seconds, outcome)"
            " SELECT ?, i / 100 + 1, i % 100, 'calc-t' || (i / 100 + 1), 'read_file', ?, ?, 0.01, 'ok' FROM n",
            (count, session, arguments, NOW.isoformat()),
        )
