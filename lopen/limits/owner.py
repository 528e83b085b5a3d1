"""Which process made a reservation, and whether it still lives."""

from __future__ import annotations

import os
import socket
from functools import lru_cache

from lopen.liveness import lives, start_time


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
    if host != socket.gethostname() or not pid.isdigit():
        return True
    return not lives(int(pid), int(started) if started.isdigit() else None)
