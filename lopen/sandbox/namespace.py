"""The process namespace of one command under bubblewrap: held back, limited, released, ended.

bwrap says on one pipe which process is the first of the new namespace, and lets the command start only when
another is written to. In between its limits are set from outside, for all it will ever start.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import signal
import subprocess
import time

from lopen.sandbox.command import CommandLimits
from lopen.sandbox.process_tree import END_S, kill_below

_START_S = 10.0
_PATIENCE_MS = 20
_CHILD = re.compile(rb'"child-pid": (\d+)')
_ENDED = b'"exit-code"'


class Pipes:
    """bwrap's status lines come to us; the command waits until we let it go."""

    def __init__(self) -> None:
        self._status_out, self.status_in = os.pipe()
        self.block_out, self._block_in = os.pipe()
        self._open = {self._status_out, self.status_in, self.block_out, self._block_in}
        self._said = b""

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)

    def close_theirs(self) -> None:
        """Once bwrap has its ends, an end of file tells of its end."""
        self._close(self.status_in)
        self._close(self.block_out)

    def child(self) -> int | None:
        """The first process of the new namespace, None where bwrap gave up before there was one."""
        deadline = time.monotonic() + _START_S
        while (found := _CHILD.search(self._said + b" ")) is None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._status_out], [], [], left)[0]:
                return None
            chunk = os.read(self._status_out, 4_096)
            if not chunk:
                return None
            self._said += chunk
        return int(found[1])

    def release(self) -> None:
        """Let the command start."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._block_in, b"\n")
        self._close(self._block_in)

    def ran(self) -> bool:
        """Whether the command was started at all. Asked once everything has ended."""
        while chunk := os.read(self._status_out, 4_096):
            self._said += chunk
        return _ENDED in self._said

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)


class Namespace:
    """The pid namespace of one command: when its first process is gone, all of it is."""

    def __init__(self, bwrap: subprocess.Popen[bytes]) -> None:
        self._bwrap = bwrap
        self._first: int | None = None
        self._pid = 0

    def open(self, pid: int | None) -> None:
        """`pid` is the namespace's first process; a descriptor keeps its number from meaning another."""
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                self._first, self._pid = os.pidfd_open(pid), pid

    def limit(self, limits: CommandLimits) -> None:
        """Set before the command starts; everything it starts inherits them."""
        if self._first is None:
            return
        data, size = limits.memory_mb * 1_000_000, limits.file_mb * 1_000_000
        wanted = [(resource.RLIMIT_DATA, data), (resource.RLIMIT_FSIZE, size), (resource.RLIMIT_CORE, 0)]
        if _kernel() >= (5, 14):  # before, a user's processes counted wherever they ran
            wanted.append((resource.RLIMIT_NPROC, limits.processes))
        for kind, most in wanted:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _lower(self._pid, kind, most)

    def end(self) -> None:
        """Kill all of it, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._bwrap.pid, signal.SIGKILL)
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            poll = select.poll()
            poll.register(self._first, select.POLLIN)
            deadline = time.monotonic() + END_S
            # The descriptor tells of the end; between, since a crowd keeps the first process from its turn to die:
            while not poll.poll(_PATIENCE_MS) and time.monotonic() < deadline:
                kill_below([self._pid])
            os.close(self._first)
            self._first = None
        self._bwrap.wait()
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)  # ours, where this process adopts orphans


def _kernel() -> tuple[int, int]:
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    return int(major), int(minor)


def _lower(pid: int, kind: int, most: int) -> None:
    """Lower a limit of another process; one that is lower already stays."""
    _, hard = resource.prlimit(pid, kind)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.prlimit(pid, kind, (most, most))
