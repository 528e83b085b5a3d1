"""Check if a recorded process still runs, by its pid and start time, since pids are reused. Standard library only."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache


def _facts(pid: int) -> list[str]:
    """Return what proc(5) tells of a process from its state on; empty if it is unknown."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()  # the name before it may contain any character
    except OSError:
        return []


def start_time(pid: int) -> int | None:
    """Return the start of `pid` in clock ticks since boot, None if it is unknown."""
    with suppress(IndexError, ValueError):
        return int(_facts(pid)[19])
    return None


def lives(pid: int, started: int | None = None) -> bool:
    """Return True if a process with that pid runs on this host and has the start time `started`, if that is known.

    A process that has ended and that its parent has not waited for (a zombie) does not run.
    """
    if pid <= 0:  # to kill(2) a group of processes
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs, as another user
        pass
    if _facts(pid)[:1] == ["Z"]:
        return False
    return started is None or start_time(pid) == started


MOST_DIGITS = 19


def this_process() -> str:
    """Return host, pid and start time of this process as one string."""
    return _word(os.getpid())


@lru_cache(maxsize=1)  # a forked child has another pid
def _word(pid: int) -> str:
    return f"{os.uname().nodename}/{pid}/{start_time(pid) or ''}"


def is_gone(owner: str) -> bool:
    """Return False if the owner is a running process of this host.

    A process on another host counts as gone: the caller holds the session's lock, so no other process works on it.
    """
    host, _, rest = owner.partition("/")
    pid, _, started = rest.partition("/")
    number = _number(pid)
    if host != os.uname().nodename or number is None:
        return True
    return not lives(number, _number(started))


def is_elsewhere(owner: str) -> bool:
    """Return True if the owner is a process of another host, of which nothing is known here."""
    host, separator, _ = owner.partition("/")
    return bool(separator) and host != os.uname().nodename


def _number(text: str) -> int | None:
    """Parse a number of at most as many digits as the kernel's numbers have; None for other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None
