"""What the live view costs: the same turns at a terminal that can show it and at one that cannot."""

from __future__ import annotations

import os
import pty
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.session import home
from tests.endpoint import ScriptedEndpoint, tools
from tests.project import Project, plan, specification

TURNS = 80
ROUNDS = 5  # side by side, so that both see the same machine
WAIT_S = 120
UNLIMITED = {
    "LOPEN_CIRCUIT__ENABLED": "false",
    "LOPEN_BUDGET__SESSION_TOKENS": "0",
    "LOPEN_BUDGET__TASK_TOKENS": "0",
    "LOPEN_BUDGET__BY_TASK_TYPE__IMPLEMENT": "0",
    "LOPEN_SANDBOX__MODE": "none",
}


def rows() -> Iterator[Row]:
    """One turn with a text and a trivial `run_command`, live view on over off (plain lines)."""
    on, off = [], []
    with home() as folder:
        for n in range(ROUNDS):
            on.append(_turn_s(folder / f"on{n}", "xterm-256color"))
            off.append(_turn_s(folder / f"off{n}", "dumb"))
    ratio = statistics.median(shown / plain for shown, plain in zip(on, off, strict=True))
    detail = f"{min(on) * 1000:.1f} ms a turn, {min(off) * 1000:.1f} ms without"
    yield Row("a turn with the live view over one without", ratio, 1.05, detail=detail)


def _turn_s(folder: Path, terminal: str) -> float:
    """Return the seconds from one request of a build to the next, at a terminal of 100 columns and 30 lines."""
    times: list[float] = []
    enough = threading.Event()

    def script(_: Any) -> Any:
        times.append(time.perf_counter())
        if len(times) > TURNS:
            enough.set()
        return (
            plan()
            if len(times) == 1
            else tools(("run_command", {"command": f"true {len(times)}"}), say="I look once more. " * 20)
        )

    with ScriptedEndpoint(script) as endpoint:
        project = Project(folder, endpoint)
        project.specify(text=specification())
        assert project.lopen("approve", "calc", "--yes").code == 0
        mine, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "lopen", "run", "calc"],
            cwd=project.root,
            env={**project.environment(**UNLIMITED), "TERM": terminal},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        threading.Thread(target=_drain, args=(mine,), daemon=True).start()
        try:
            assert enough.wait(WAIT_S), f"{len(times)} requests in {WAIT_S} s"
        finally:
            process.kill()
            process.wait()
    return (times[-1] - times[2]) / (len(times) - 3)


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
