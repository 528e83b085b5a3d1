"""Whether a process that was written down still lives. Pids are used again: the start time tells. Standard library only."""

from __future__ import annotations

import os
import socket
from functools import lru_cache


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


MOST_DIGITS = 19


def this_process() -> str:
    """host, pid and start, as one word."""
    return _word(os.getpid())


@lru_cache(maxsize=1)  # a forked child has another pid
def _word(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{start_time(pid) or ''}"


def is_gone(owner: str) -> bool:
    """False where the owner is a living process of this host.

    One on another host counts as gone: whoever asks holds the session's lock, so nobody else works on it.
    """
    host, _, rest = owner.partition("/")
    pid, _, started = rest.partition("/")
    number = _number(pid)
    if host != socket.gethostname() or number is None:
        return True
    return not lives(number, _number(started))


def _number(text: str) -> int | None:
    """Digits, and no more of them than a number of the kernel's can have."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None
