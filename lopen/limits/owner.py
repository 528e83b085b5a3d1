"""Which process made a reservation, and whether it still lives."""

from __future__ import annotations

import os
import socket
from functools import lru_cache

from lopen.liveness import lives, start_time

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
