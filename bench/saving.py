"""What saving one change of a task costs, with few and with many tasks in the tree."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench.rows import Row
from lopen.clock import SystemClock
from lopen.events import TaskChanged
from lopen.journal import Journal
from lopen.storage.database import Database
from lopen.storage.sessions import SessionStore
from lopen.tasks.tree import Component, Task, Tree
from lopen.workflow.session import Session

FEW, MANY, SAVES = 10, 10_000, 200


def rows() -> Iterator[Row]:
    """One event and one changed task, durably."""
    few, many = _seconds(FEW), _seconds(MANY)
    detail = f"{many * 1000:.2f} ms against {few * 1000:.2f} ms"
    yield Row(f"saving one event with {MANY:,} tasks, against {FEW}", many / few, 2, detail=detail)


def _seconds(tasks: int) -> float:
    with tempfile.TemporaryDirectory(prefix="lopen-bench-") as folder:
        now = datetime.now(UTC)
        each = max(1, tasks // 10)
        components = tuple(
            Component(f"c{c}", f"C{c}", tasks=tuple(Task(f"m-t{c}-{n}", f"T {n}") for n in range(each)))
            for c in range(tasks // each)
        )
        store = SessionStore(Database(Path(folder) / "state.db"))
        journal = Journal(store, Session("m-1", "m", now, tree=Tree(components)), SystemClock(), redact=str)
        journal.save(journal.session)
        began = time.perf_counter()
        for n in range(SAVES):
            tree = journal.session.tree
            task = tree.components[n % len(tree.components)].tasks[-1]
            changed = tree.with_task(replace(task, note=f"try {n}"))
            journal.change(TaskChanged(task.id, task.name, "C", "pending"), tree=changed)
        return (time.perf_counter() - began) / SAVES
