"""Whether a process that was written down still lives. Pids are used again: the start time tells. Standard library only."""

from __future__ import annotations

import os


def start_time(pid: int) -> int | None:
    """When `pid` was started, in the kernel's clock ticks since boot (proc(5)); None where it is gone or not told."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[19])  # the name before it may hold anything
    except (OSError, IndexError, ValueError):
        return None


def lives(pid: int, started: int | None = None) -> bool:
    """Whether a process of that number lives on this host and, where `started` is known, is the one that was meant."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's, but it lives
        pass
    return started is None or start_time(pid) == started
