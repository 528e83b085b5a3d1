"""Which process made a reservation, and whether it still lives. Pids are used again: the start time tells."""

from __future__ import annotations

import os
import socket
from functools import lru_cache


def _started(pid: int) -> str:
    """The process's start in clock ticks since boot, where the system tells (Linux); else empty."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def this_process() -> str:
    """host, pid and start, as one word."""
    return _word(os.getpid())


@lru_cache(maxsize=1)  # a forked child has another pid
def _word(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{_started(pid)}"


def is_gone(owner: str) -> bool:
    """False where the owner is a living process of this host.

    One on another host counts as gone: whoever asks holds the session's lock, so nobody else works on it.
    """
    host, _, rest = owner.partition("/")
    pid, _, started = rest.partition("/")
    if host != socket.gethostname() or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return bool(started) and _started(int(pid)) != started
