"""Noticing that a command multiplies: more tasks than it may have.

RLIMIT_NPROC counts a user's tasks machine-wide and does not bind root, so it cannot serve alone. Counting a
tree exactly means reading all of /proc; that is done only once the machine's own count has grown enough to
make it possible, and with the command's group stopped meanwhile: a tree that doubles outruns its counting.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable

from lopen.sandbox.tree import LINUX, descendants, read_whole

TICK_S = 0.02


class Crowd:
    """Watches the tasks below `tops()`; `group` is the command's process group."""

    def __init__(self, group: int, limit: int, tops: Callable[[], Iterable[int]]) -> None:
        self._group = group
        self._limit = limit
        self._tops = tops
        self._others = _tasks_of_machine()
        self._looked = time.monotonic()

    def too_large(self) -> bool:
        """Whether there are more than `limit` tasks; looks at most once a tick. A crowd is left stopped."""
        now = time.monotonic()
        if now - self._looked < TICK_S:
            return False
        self._looked = now
        if _tasks_of_machine() - self._others < self._limit:
            return False
        self._signal(signal.SIGSTOP)
        count = sum(process.threads for process in descendants(self._tops()))
        if count > self._limit:
            return True
        self._signal(signal.SIGCONT)
        self._others = _tasks_of_machine() - count
        return False

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)


def _tasks_of_machine() -> int:
    """The task count of `/proc/loadavg` (proc(5)); 0 elsewhere."""
    if not LINUX:
        return 0
    return int(read_whole("/proc/loadavg").split()[3].partition(b"/")[2])
