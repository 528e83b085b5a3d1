"""What running a trivial command costs in each sandbox, over starting a shell: `python -m bench.sandbox`."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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


def measure(runs: int = RUNS) -> dict[str, float]:
    """Milliseconds a trivial command takes: a bare shell, then every mode that works here."""
    found = {"sh": median_ms(lambda: subprocess.run(["/bin/sh", "-c", "true"], check=True), runs)}
    modes: tuple[Mode, ...] = ("none", "landlock", "bwrap")
    with tempfile.TemporaryDirectory() as folder:
        command = Command("true", Path(folder))
        for mode in modes:
            if probe(mode).works:
                sandbox = choose(mode, Path(folder))
                found[mode] = median_ms(lambda sandbox=sandbox: sandbox.run(command), runs)  # type: ignore[misc]  # bound now
    return found


if __name__ == "__main__":
    for name, taken in measure().items():
        print(f"{name:10} {taken:7.2f} ms")
