"""What saving one change of a task costs, with few and with many tasks in the tree."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench.rows import Row
from lopen.core.clock import SystemClock
from lopen.core.events import TaskChanged
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.session import Plan, Session
from lopen.workflow.task_tree import Component, Task, TaskTree

FEW, MANY = 10, 10_000
BATCHES, SAVES = 9, 40


def rows() -> Iterator[Row]:
    """One event and one changed task, durably; in turns, so that both see the same disk."""
    with ExitStack() as stack:
        savers = [_Saver(Path(stack.enter_context(_folder())), tasks) for tasks in (FEW, MANY)]
        os.sync()  # what making them wrote is not to be waited for
        taken = [[saver.seconds() for saver in savers] for _ in range(BATCHES + 1)][1:]
    few, many = (statistics.median(column) for column in zip(*taken, strict=True))
    detail = f"{many * 1000:.2f} ms against {few * 1000:.2f} ms"
    yield Row(f"saving one event with {MANY:,} tasks, against {FEW}", many / few, 2, detail=detail)


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="lopen-bench-")


class _Saver:
    """A session with so many tasks, of which one is changed at a time."""

    def __init__(self, folder: Path, tasks: int) -> None:
        each = max(1, tasks // 10)
        components = tuple(
            Component(f"c{c}", f"C{c}", tasks=tuple(Task(f"m-t{c}-{n}", f"T {n}") for n in range(each)))
            for c in range(tasks // each)
        )
        session = Session("m-1", "m", datetime.now(UTC), plan=Plan(tree=TaskTree(components)))
        self._journal = Journal(
            SessionStore(Database(folder / "state.db")), session, SystemClock(), redact=str
        )
        self._journal.save(session)

    def seconds(self) -> float:
        """What one change took, on average over a batch."""
        journal, began = self._journal, time.perf_counter()
        for n in range(SAVES):
            tree = journal.session.tree
            task = tree.components[n % len(tree.components)].tasks[-1]
            changed = changes.with_task(journal.session, replace(task, reasons=(f"try {began} {n}",)))
            journal.save(changed, TaskChanged(task.id, task.name, "C", "pending"))
        return (time.perf_counter() - began) / SAVES
