"""What running a trivial command costs in each sandbox that works here, over running it without one."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.rows import Row
from lopen.sandbox.choice import Mode, choose, probe
from lopen.sandbox.command import Command

RUNS = 50


def median_ms(once: Callable[[], object], runs: int = RUNS) -> float:
    """The median of `runs` runs, in milliseconds, after one to warm up."""
    once()
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        once()
        taken.append((time.perf_counter() - started) * 1_000)
    return statistics.median(taken)


def rows() -> Iterator[Row]:
    """`true` in every mode that works here, in milliseconds over the unsandboxed one."""
    modes: tuple[Mode, ...] = ("none", "landlock", "bwrap")
    with tempfile.TemporaryDirectory() as folder:
        command = Command("true", Path(folder))
        working = [choose(mode, Path(folder)) for mode in modes if probe(mode).works]
        taken = {sandbox.name: median_ms(partial(sandbox.run, command)) for sandbox in working}
    for name, ms in taken.items():
        if name != "none":
            detail = f"{ms:.1f} ms against {taken['none']:.1f} ms"
            yield Row(f"true under {name}, over none", ms - taken["none"], 12, unit="ms", detail=detail)
