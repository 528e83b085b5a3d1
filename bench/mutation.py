"""How long the mutation check of a task takes: five changed functions, and tests that run one second."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.cleanroom import project
from bench.rows import Row
from lopen.core.clock import SystemClock
from lopen.git.repository import Repository
from lopen.sandbox.choice import choose, probe
from lopen.sandbox.protected import ProtectedPaths
from lopen.store.audit import AuditTrail
from lopen.store.database import Database
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.test_integrity import FileChange
from lopen.tools.clean_room import CleanRoom
from lopen.tools.commands import Commands
from lopen.tools.mutation import MutationRunner
from lopen.tools.reruns import TestRun
from lopen.workflow.session import Session

CORES = 2
COMMAND = "sleep 0.8 && python3 -m unittest -q"  # about one second in all
CODE = "".join(
    f"def part{n}(a, b):\n    if a > {n} and b:\n        return a - b * {n}\n    return a + b\n\n\n"
    for n in range(5)
)
TEST = """import unittest

from parts import part0, part1, part2, part3, part4


class TestParts(unittest.TestCase):
    def test_parts(self):
        for n, part in enumerate((part0, part1, part2, part3, part4)):
            self.assertEqual([part(9, 2), part(n, 2), part(9, 0)], [9 - 2 * n, n + 2, 9])
"""


def rows() -> Iterator[Row]:
    """The check of one task, on at most two processors."""
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[:CORES])
    try:
        with tempfile.TemporaryDirectory() as folder:
            seconds, detail = measured(Path(folder))
    finally:
        os.sched_setaffinity(0, usable)
    yield Row("mutation check, 5 functions, tests of 1 s, 2 cores", seconds, 15, unit="s", detail=detail)


def measured(base: Path) -> tuple[float, str]:
    """Return the seconds of the check, and what it found."""
    root = project(base / "project", 100)
    (root / "parts.py").write_text(CODE, "utf-8")
    (root / "test_parts.py").write_text(TEST, "utf-8")
    clock, session = SystemClock(), Session("bench-20260101-1", "bench", SystemClock().now())
    with closing(Database(base / "state.db")) as database:
        journal = Journal(SessionStore(database), session, clock, redact=str)
        journal.save(session)
        repository = Repository.open(root, clock=clock)
        sandbox = choose("bwrap" if probe("bwrap").works else "none", root)
        commands = Commands(sandbox, repository, ProtectedPaths(root), journal)
        room = CleanRoom(base / "rooms", repository, root, mounted=sandbox.name == "bwrap")
        audit = AuditTrail(database, session.id, str)
        runner = MutationRunner(commands, room, journal, audit, clock, network=False)
        tree = repository.snapshot()
        room.enter(tree)  # as for the run of the tests before it, which has the room show git's folder
        room.leave(wanted=lambda _: False)
        started = time.monotonic()
        tests = TestRun(COMMAND, tree, 1.0)
        found = runner.check("", [FileChange("parts.py", None, CODE)], tests)
        took = time.monotonic() - started
        room.close()
    return took, next(found.lines()) if found else "no mutants"
