"""A command's processes without a pid namespace: counting them, and leaving none behind.

On Linux lopen is the subreaper of what it starts: a daemon that left its group, its session and its parent
becomes lopen's child, and is found. A command's processes are in sessions of their own, which tells them
from lopen's other children. Elsewhere only the process group is ended.
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
END_S = 60.0  # thousands of processes take a while to die
_ROUND_S = 0.005
_PIECE = 65_536
_PROC = Path("/proc")

LINUX = sys.platform.startswith("linux")
_ONE_AT_A_TIME = threading.Lock()  # an orphan does not tell whose it was


@dataclass(frozen=True, slots=True)
class Process:
    """A line of `/proc/<pid>/stat` (proc(5)); `started` is in clock ticks since boot."""

    pid: int
    parent: int
    group: int
    threads: int
    started: int
    state: str


def read_process(pid: int) -> Process | None:
    """What the kernel says of `pid`, None where it is gone."""
    try:
        line = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        fields = line[line.rindex(")") + 2 :].split()  # the name before it may hold anything
        return Process(pid, int(fields[1]), int(fields[2]), int(fields[17]), int(fields[19]), fields[0])
    except (OSError, ValueError, IndexError):
        return None


def descendants(roots: Iterable[int]) -> list[Process]:
    """`roots` and everything below them, as far as parents tell."""
    listed = (read_process(int(name)) for name in os.listdir(_PROC) if name.isdigit())
    processes = {p.pid: p for p in listed if p is not None}
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


def adopted() -> set[int]:
    """lopen's own children that live in another session: commands, and orphans of commands."""
    if not LINUX:
        return set()
    own = os.getsid(0)
    found = set()
    for pid in _children():
        with contextlib.suppress(OSError):
            if os.getsid(pid) != own:
                found.add(pid)
    return found


class ProcessTree:
    """Everything one command started. Made by `adopting`, told of the command's first process by `root`."""

    def __init__(self, others: set[int]) -> None:
        self._others = others
        self._process: subprocess.Popen[bytes] | None = None

    def root(self, process: subprocess.Popen[bytes]) -> None:
        """`process` is the command; it leads a session of its own."""
        self._process = process

    def pids(self) -> set[int]:
        """The tops of the tree: the command, and its orphans."""
        own = {self._process.pid} if self._process else set()
        return own | (adopted() - self._others)

    def end(self) -> None:
        """Kill what is left and reap it. The command's exit code is then known."""
        process, self._process = self._process, None
        if process is None:
            return  # ended before; its number may be another's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()  # only now are its children ours
        deadline = time.monotonic() + END_S
        while (strays := adopted() - self._others) and time.monotonic() < deadline:
            kill_below(strays)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            # Looked for again: what dies hands its own children on to us, and nothing tells of one that was forked
            # meanwhile. SIGCHLD is no answer: this may not be the main thread, which alone hears signals.
            time.sleep(_ROUND_S)


@contextlib.contextmanager
def adopting() -> Iterator[ProcessTree]:
    """For the length of one command: what it orphans becomes ours, and is ended with it."""
    with _ONE_AT_A_TIME:
        _become_subreaper()
        tree = ProcessTree(adopted())
        try:
            yield tree
        finally:
            tree.end()


@lru_cache(maxsize=1)
def _become_subreaper() -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> list[int]:
    """This process's children, of all its threads; without the kernel's list, by looking at every process."""
    try:
        tasks = f"{_PROC}/self/task"
        return [
            int(pid) for task in os.listdir(tasks) for pid in read_whole(f"{tasks}/{task}/children").split()
        ]
    except OSError:
        own = os.getpid()
        return [p.pid for p in descendants([own]) if p.parent == own]


def read_whole(path: str) -> bytes:
    """A file of the kernel's, in as many steps as it takes; `open` costs more than the reading does."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(file, _PIECE):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(file)


def kill_below(tops: Iterable[int]) -> None:
    """One round of killing `tops` and all below them. They must be in sessions that are not lopen's.

    By groups first: a whole group dies in one step of the kernel, however fast it multiplies. What was born
    meanwhile is for the next round.
    """
    found = descendants(tops)
    for group in {p.group for p in found} - {0, os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for process in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)
