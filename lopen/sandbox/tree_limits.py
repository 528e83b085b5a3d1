"""The limits of a command's whole tree of processes: their number, their memory, what they write to disks.

Limits of the kernel apply to each process (setrlimit(2)), so this measures the tree while the command runs. Between
two measurements a tree can exceed a limit; the limits of each process bound by how much.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterable

from lopen.sandbox.command import CommandLimits, KilledBy
from lopen.sandbox.process_tree import LINUX, Process, descendants, read_kernel_file

TICK_S = 0.02
_TREE_S = 0.25  # reading the whole tree takes milliseconds
_AVAILABLE = re.compile(rb"^MemAvailable:\s+(\d+) kB", re.MULTILINE)
_OWN_MEMORY = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_SHARE = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_WRITTEN = re.compile(rb"^write_bytes: (\d+)", re.MULTILINE)


class TreeLimits:
    """The limits on everything below `roots()`; `group` is the command's process group. Linux only."""

    def __init__(self, group: int, limits: CommandLimits, roots: Callable[[], Iterable[int]]) -> None:
        self._group = group
        self._limits = limits
        self._roots = roots
        self._others = _tasks_of_machine()
        self._available = _available_kb()
        self._checked = self._measured = time.monotonic()

    def exceeded(self) -> KilledBy:
        """Return the limit that the tree exceeds, "" for none. Check once a tick."""
        now = time.monotonic()
        if not LINUX or now - self._checked < TICK_S:
            return ""
        self._checked = now
        if _tasks_of_machine() - self._others >= self._limits.processes and self._has_too_many_tasks():
            return "processes"
        # A fast fall of the machine's free memory is a reason to look at once.
        taken = self._available - (available := _available_kb())
        if now - self._measured < _TREE_S and taken * 1_000 < self._limits.memory_mb * 250_000:
            return ""
        self._measured, self._available = now, available
        tree = descendants(self._roots())
        if self._uses_too_much_memory(tree):
            return "memory"
        return "written" if _written(tree) > self._limits.written_mb * 1_000_000 else ""

    def _has_too_many_tasks(self) -> bool:
        """Count the tasks of the tree with its process group stopped; leave it stopped if there are too many."""
        self._signal(signal.SIGSTOP)
        count = sum(process.threads for process in descendants(self._roots()))
        if count > self._limits.processes:
            return True
        self._signal(signal.SIGCONT)
        self._others = _tasks_of_machine() - count
        return False

    def _uses_too_much_memory(self, tree: list[Process]) -> bool:
        """Add the memory of the processes, first with shared pages counted for each of them, which is fast."""
        most = self._limits.memory_mb * 1_000_000 // 1_024
        pids = [process.pid for process in tree]
        if sum(_sum(f"/proc/{pid}/status", _OWN_MEMORY) for pid in pids) <= most:
            return False
        shares = (_sum(f"/proc/{pid}/smaps_rollup", _SHARE) for pid in pids)
        return sum(shares) > most

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)


def _tasks_of_machine() -> int:
    """Return the task count of `/proc/loadavg` (proc(5)), 0 on other systems."""
    if not LINUX:
        return 0
    return int(read_kernel_file("/proc/loadavg").split()[3].partition(b"/")[2])


def _available_kb() -> int:
    return _sum("/proc/meminfo", _AVAILABLE) if LINUX else 0


def _written(tree: Iterable[Process]) -> int:
    """Return the bytes that the processes and the ended ones that they waited for wrote towards disks."""
    return sum(_sum(f"/proc/{process.pid}/io", _WRITTEN) for process in tree)


def _sum(path: str, field: re.Pattern[bytes]) -> int:
    """Return the sum of a field's values, 0 if the file is not readable or gone."""
    with contextlib.suppress(OSError):
        return sum(map(int, field.findall(read_kernel_file(path))))
    return 0
