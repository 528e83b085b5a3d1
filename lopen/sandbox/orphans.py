"""Ending what commands of a killed lopen left running: nobody else would, and it would act under the next run's eyes.

A command's environment names the project by its HOME, and what it starts inherits that. Under bubblewrap there is
nothing to end: the namespace dies with lopen. A program that empties its environment and leaves its session is not
found; only the sandbox still confines it.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from lopen.sandbox.ancestry import is_lopen_process
from lopen.sandbox.environment import SESSION_VARIABLE
from lopen.sandbox.process_tree import END_S, LINUX, descendants, kill_below, read_process

_ROUND_S = 0.005
_DEEPEST = 1_000


def end_survivors(root: Path) -> int:
    """Kill every process that a command of this project started and no lopen looks after; how many there were.

    To be called by whoever holds lopen's own lock on the checkout, before anything is run.
    """
    if not LINUX:
        return 0
    seen: set[int] = set()
    deadline = time.monotonic() + END_S
    while found := {p.pid for p in descendants(survivors(root)) if p.state != "Z"}:
        seen |= found
        if time.monotonic() > deadline:
            break
        kill_below(found)
        # Not our children, so there is nothing to wait for; and one that was forked meanwhile is only seen by looking.
        time.sleep(_ROUND_S)
    return len(seen)


def survivors(root: Path) -> list[int]:
    """Running commands of the project at `root` above which there is no lopen any more."""
    home = os.fsencode(f"HOME={root.resolve()}/.lopen/cache/")
    marker = os.fsencode(f"{SESSION_VARIABLE}=")
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if _is_marked(pid, home, marker) and not _is_looked_after(pid)]


def _is_marked(pid: int, home: bytes, marker: bytes) -> bool:
    with contextlib.suppress(OSError):  # gone, or somebody else's
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            variables = (file.read() or b"").split(b"\0")
        return any(v.startswith(home) for v in variables) and any(v.startswith(marker) for v in variables)
    return False


def _is_looked_after(pid: int) -> bool:
    """Whether a lopen stands above the process; the process itself, should it be one, is a command like any other."""
    for _ in range(_DEEPEST):
        process = read_process(pid)
        if process is None or process.parent <= 1:
            return False
        pid = process.parent
        if is_lopen_process(pid):
            return True
    return False
