"""What the limits cost: a hook as a process, and a call recorded in budget and circuit, durably.

A fresh database and one with a million calls behind it are recorded into in turn, with a bare commit of
SQLite between them, so that all three meet the same disk.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.rows import Row
from lopen.claude_hooks.install import hook_command
from lopen.core.clock import SystemClock
from lopen.guardrails.call_history import CallEnd
from lopen.limits.budget import Charge, specs_for
from lopen.limits.call_gate import ToolPass
from lopen.limits.charging import charge_all
from lopen.limits.meter import Meter
from lopen.limits.sqlite_store import SqliteStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from lopen.store.database import Database

CHARGE = Charge(1_100, Usage(1_000, 100), 1, 0.001, "builder", "opus")
PAST = int(os.environ.get("LOPEN_BENCH_CALLS", "1000000"))
OFF = {"rapid_fire": {"enabled": False}, "max_iterations": {"enabled": False}}


class Recorder:
    """A session that records calls in one transaction each."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        settings = Settings.model_validate({"circuit": OFF, "budget": {"enabled": False}})
        self.clock = SystemClock()
        self.store = SqliteStore(self.database)
        self.specs = specs_for(settings.budget, session_id="s", module="m", task="t")
        self.meter = Meter(self.store, settings, self.clock)
        self.meter.open("s", "m", "t")
        self.calls = 0

    def record(self) -> None:
        """One call and the tokens of the turn that asked for it."""
        self.calls += 1
        with self.database.transaction():
            passed = self.meter.gate.before_tool("read_file", {"path": f"src/{self.calls}.py"}, self.calls)
            assert isinstance(passed, ToolPass)
            self.meter.gate.after_tool(passed, CallEnd(passed.tool, passed.signature))
            now = self.clock.now()
            self.store.atomically(lambda rows: charge_all(rows, self.specs, CHARGE, now))

    def many(self, count: int) -> None:
        """So many calls in one transaction: a past, quickly made."""
        with self.database.transaction():
            for _ in range(count):
                self.record()


BATCH = 10_000  # calls of the past in one transaction
BATCHES = 5
HOOK_ROUNDS = 60


class BareCommit:
    """The floor: one small row, replaced durably."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, body TEXT)")

    def record(self) -> None:
        self._connection.execute("INSERT OR REPLACE INTO kept VALUES (1, ?)", ("x" * 1_000,))


def medians_ms(*works: Callable[[], None], rounds: int, batches: int = BATCHES) -> list[float]:
    """The median of each in milliseconds, all of them in turn, in the quietest of some batches.

    Whatever else runs on the machine only ever adds; one batch's medians belong together.
    """
    return min((_medians(works, rounds) for _ in range(batches)), key=sum)


def _medians(works: Sequence[Callable[[], None]], rounds: int) -> list[float]:
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, own in zip(works, times, strict=True):
            own.append(_milliseconds(work))
    return [statistics.median(own) for own in times]


def _milliseconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def plain_python(folder: Path) -> str:
    """An environment with nothing in it, as an installed lopen has one: development tools make every start slower.

    The hook needs the standard library alone.
    """
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python")


def hook_ms(folder: Path, redis: str = "", rounds: int = HOOK_ROUNDS) -> list[list[float]]:
    """Milliseconds with warm caches: of a bare Python, a call's hook, a session's start, a call over Redis.

    Each is a line that a shell runs, as Claude Code runs hooks; the hooks' are those that `hooks install` writes.
    They run in turn, so that the n-th of each met the same machine.
    """
    python = plain_python(folder / "python")
    (folder / ".lopen").mkdir()
    env = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTHONPYCACHEPREFIX": str(folder / "pyc"),
        "PYTHONDONTWRITEBYTECODE": "",
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "CIRCUIT_BREAKER_RAPID_FIRE_THRESHOLD": "100000",
        "LOPEN_CIRCUIT__SEQUENTIAL_TOOL__ENABLED": "false",
        "LOPEN_CIRCUIT__MAX_ITERATIONS__THRESHOLD": "1000000000",
    }
    numbers = count()

    def run(line: str, **more: str) -> None:
        event = {"session_id": "s", "tool_name": "Read", "tool_input": {"file_path": f"a{next(numbers)}"}}
        subprocess.run(
            ["/bin/sh", "-c", line],
            input=json.dumps(event).encode(),
            stdout=subprocess.DEVNULL,
            cwd=folder,
            env=env | more,
            check=True,
        )

    call = hook_command("pre-tool-use", "lopen", python)
    start = hook_command("session-start", "lopen", python)
    works: list[Callable[[], None]] = [
        lambda: run(f"exec {python} -c pass"),
        lambda: run(call),
        lambda: run(start),
    ]
    if redis:
        works.append(lambda: run(call, LOPEN_BUDGET__STORE=redis))
    for work in works:
        work()
    times = [_milliseconds(work) for _ in range(rounds) for work in works]
    return [times[i :: len(works)] for i in range(len(works))]


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """The address of a Redis server on a socket; empty where there is none on this machine."""
    binary = shutil.which("redis-server")
    if binary is None:
        yield ""
        return
    path = folder / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    with subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL) as process:
        for _ in range(500):
            if path.exists():
                break
            time.sleep(0.01)
        try:
            yield f"unix://{path}"
        finally:
            process.terminate()


def hook_rows(folder: Path) -> Iterator[Row]:
    """What Claude Code waits for at each call and at a session's start."""
    with redis_server(folder) as redis:
        bare, hook, start, *shared = hook_ms(folder, redis)
    yield _against(bare, hook, "lopen hook pre-tool-use against a bare Python", 1.5)
    yield Row("lopen hook pre-tool-use, the whole process", statistics.median(hook), 120, "ms")
    yield Row("lopen hook session-start, the whole process", statistics.median(start), 200, "ms")
    for times in shared:
        yield _against(bare, times, "lopen hook pre-tool-use over Redis against a bare Python", 2)
        beyond = statistics.median(times) - statistics.median(bare)
        yield Row("lopen hook pre-tool-use over Redis, beyond a bare Python", beyond, 50, "ms")


def _against(bare: Sequence[float], hook: Sequence[float], what: str, most: float) -> Row:
    """The median of the ratios of those that ran side by side; the quickest of each tell what a quiet machine needs."""
    ratio = statistics.median(own / floor for own, floor in zip(hook, bare, strict=True))
    medians = f"{statistics.median(hook):.1f} ms over {statistics.median(bare):.1f} ms"
    return Row(what, ratio, most, detail=f"{medians}; the quickest {min(hook):.1f} over {min(bare):.1f}")


def rows() -> Iterator[Row]:
    """The hook against a bare Python; one call against its bound, and with a long past against without."""
    with tempfile.TemporaryDirectory(prefix="lopen-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        yield from hook_rows(folder)
        fresh, old = Recorder(folder / "fresh.db"), Recorder(folder / "old.db")
        while old.calls < PAST:
            old.many(min(BATCH, PAST - old.calls))
        floor, new, late = medians_ms(
            BareCommit(folder / "bare.db").record, fresh.record, old.record, rounds=100
        )
        detail = f"{new / floor:.1f} times a bare commit ({floor:.2f} ms)"
        yield Row("one call in budget and circuit, durable", new, 1.5, "ms", detail=detail)
        yield Row(f"the same with {PAST:,} calls recorded", late / new, 1.2, detail=f"{late:.2f} ms")
