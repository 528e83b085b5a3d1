"""Count and end a command's processes without a pid namespace.

On Linux lopen is the subreaper of its commands: a daemon that leaves its group, its session and its parent becomes
lopen's child. The processes of a command have other sessions than lopen, which distinguishes them from lopen's other
children. On other systems lopen ends the process group only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_WALL = 0x4000_0000  # waitid(2): children of every kind, also ones made by clone(2) with another signal
END_S = 60.0  # thousands of processes take a while to die
_ROUND_S = 0.005
_PIECE = 65_536
_PROC = Path("/proc")

LINUX = sys.platform.startswith("linux")
_TREE_LOCK = threading.Lock()  # one tree at a time, because an orphan does not show which command started it


@dataclass(frozen=True, slots=True)
class Process:
    """Fields of `/proc/<pid>/stat` (proc(5)); `started` is in clock ticks since boot."""

    pid: int
    parent: int
    group: int
    session: int
    threads: int
    started: int
    state: str


def read_process(pid: int) -> Process | None:
    """Read the process from `/proc`; return None if it does not exist."""
    try:
        line = read_kernel_file(f"{_PROC}/{pid}/stat").decode("utf-8", "replace")
        fields = line[line.rindex(")") + 2 :].split()  # the name before it may contain any character
        parent, group, session = map(int, fields[1:4])
        return Process(pid, parent, group, session, int(fields[17]), int(fields[19]), fields[0])
    except (OSError, ValueError, IndexError):
        return None


def _processes() -> Iterator[Process]:
    """Yield every process. The kernel's own lists of children miss some while others end (proc(5))."""
    for name in os.listdir(_PROC):
        if name.isdigit() and (process := read_process(int(name))) is not None:
            yield process


def descendants(roots: Iterable[int]) -> list[Process]:
    """Return `roots` and all their descendants."""
    processes = {process.pid: process for process in _processes()}
    below: dict[int, list[int]] = {}
    for process in processes.values():
        below.setdefault(process.parent, []).append(process.pid)
    pending, found = list(roots), dict[int, Process]()
    while pending:
        pid = pending.pop()
        if pid in processes and pid not in found:
            found[pid] = processes[pid]
            pending.extend(below.get(pid, []))
    return list(found.values())


def adopted_children() -> set[int]:
    """Return lopen's children in other sessions: commands and their orphans."""
    if not LINUX or not _has_children():
        return set()
    own, session = os.getpid(), os.getsid(0)
    return {p.pid for p in _processes() if p.parent == own and p.session != session}


def _has_children() -> bool:
    """Tell whether any child exists, running or not reaped: one system call in place of reading `/proc`."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WALL)
    except ChildProcessError:
        return False
    return True


class ProcessTree:
    """The processes of one command. `process_tree` creates it; `set_command` names its first process."""

    def __init__(self, others: set[int]) -> None:
        self._others = others
        self._process: subprocess.Popen[bytes] | None = None

    def set_command(self, process: subprocess.Popen[bytes]) -> None:
        """Set the command's process, which leads its own session."""
        self._process = process

    def roots(self) -> set[int]:
        """Return the roots of the tree: the command and its orphans."""
        own = {self._process.pid} if self._process else set()
        return own | (adopted_children() - self._others)

    def end(self) -> None:
        """Kill and reap the remaining processes. After that the command's exit code is known."""
        process, self._process = self._process, None
        if process is None:
            return  # it ended already, and its pid may belong to another process now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()  # its children become children of this process only now
        deadline = time.monotonic() + END_S
        while (orphans := adopted_children() - self._others) and time.monotonic() < deadline:
            kill_trees(orphans)
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            # Poll, because a dying process passes its children on to this one, and new forks are not reported.
            # SIGCHLD does not help: only the main thread receives signals, and this may be another one.
            time.sleep(_ROUND_S)


@contextlib.contextmanager
def process_tree() -> Iterator[ProcessTree]:
    """Adopt the orphans of one command while it runs, and end them with it."""
    with _TREE_LOCK:
        _become_subreaper()
        tree = ProcessTree(adopted_children())
        try:
            yield tree
        finally:
            tree.end()


@lru_cache(maxsize=1)
def _become_subreaper() -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read_kernel_file(path: str) -> bytes:
    """Read a whole file of `/proc`; the built-in `open` costs more time than the reading."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(file, _PIECE):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(file)


def kill_trees(tops: Iterable[int]) -> None:
    """Kill `tops` and their descendants once. They must be in other sessions than lopen.

    Kill groups first: the kernel ends a whole group at once, however fast it forks. The caller repeats the call for
    processes that start meanwhile.
    """
    found = descendants(tops)
    for group in {p.group for p in found} - {0, os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for process in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
