"""The start of a command, over a bare interpreter's; and of a run up to its first request, over importing the SDK.

The first are of processor time, which other programs on the machine disturb less.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.session import home
from tests.endpoint import ScriptedEndpoint, status
from tests.project import Project

ROUNDS = 9
RUNS = 3
LOPEN = (sys.executable, "-m", "lopen")
BARE = (sys.executable, "-c", "pass")


def completing(words: str) -> dict[str, str]:
    """Return the variables with which a shell asks to complete the last of the words."""
    asked = {"COMP_WORDS": f"lopen {words}", "COMP_CWORD": str(words.count(" ") + 1)}
    return {"_LOPEN_COMPLETE": "complete_bash", **asked}


STARTS: tuple[tuple[str, Sequence[str], Mapping[str, str], float], ...] = (
    ("lopen --version", (*LOPEN, "--version"), {}, 3),
    ("lopen --help", (*LOPEN, "--help"), {}, 16),
    ("lopen status", (*LOPEN, "status"), {}, 16),
    ("completing a command", LOPEN, completing("st"), 10),
    ("completing a module of status", LOPEN, completing("status "), 10),
    ("completing a module of run", LOPEN, completing("run "), 10),
)


def processor_ms(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> float:
    """Return the processor time of one run of a command, in milliseconds."""
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return (used.ru_utime + used.ru_stime) * 1_000


def rows() -> Iterator[Row]:
    with home() as folder:
        project = Project(folder / "project")
        project.specify()
        environ = project.environment()
        subprocess.run(
            [*LOPEN, "run", "calc"], cwd=project.root, env=environ, capture_output=True, check=False
        )
        taken: dict[str, list[float]] = {what: [] for what, *_ in STARTS}
        bare = []
        for _ in range(ROUNDS):  # in turns, so that another program's load meets all of them
            bare.append(processor_ms(BARE, project.root, environ))
            for what, command, variables, _ in STARTS:
                taken[what].append(processor_ms(command, project.root, {**environ, **variables}))
    floor = statistics.median(bare)
    for what, _, _, target in STARTS:
        own = statistics.median(taken[what])
        yield Row(
            f"{what}, over bare Python", own / floor, target, detail=f"{own:.0f} ms over {floor:.0f} ms"
        )
    yield first_request()


def first_request() -> Row:
    """Return the time of `lopen run` until its first request arrives, less that of importing the SDK."""
    arrived: list[float] = []

    def answer(_: Any) -> Any:
        arrived.append(time.perf_counter())
        return status(400, "measured")

    whole, imported = [], []
    for _ in range(RUNS):
        with home() as folder, ScriptedEndpoint(answer) as endpoint:
            project = Project(folder / "project", endpoint, LOPEN_SANDBOX__MODE="none")
            project.specify()
            assert project.spawned("approve", "calc", "--yes").code == 0
            sdk = [sys.executable, "-c", "import lopen.models.sdk"]
            began = time.perf_counter()
            subprocess.run(sdk, cwd=project.root, env=project.environment(), check=True)
            imported.append(time.perf_counter() - began)
            arrived.clear()
            began = time.perf_counter()
            project.spawned("run", "calc", "-q")
            whole.append(arrived[0] - began)
    over = (statistics.median(whole) - statistics.median(imported)) * 1_000
    detail = f"{statistics.median(whole):.2f} s, the SDK {statistics.median(imported):.2f} s"
    return Row("lopen run to the first request, over importing the SDK", over, 500, unit="ms", detail=detail)
