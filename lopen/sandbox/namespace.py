"""The process namespace of one command under bubblewrap: blocked, limited, released, ended.

bwrap reports the first process of the new namespace on one pipe and starts the command when lopen writes to another.
In between, lopen sets limits on that process, which every later process inherits.
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
from lopen.sandbox.process_tree import END_S, kill_trees

_START_S = 10.0
_POLL_MS = 20
_CHILD = re.compile(rb'"child-pid": (\d+)')
_ENDED = b'"exit-code"'


class Pipes:
    """Two pipes to bwrap: the first for its status lines, the second blocks the command until `release`."""

    def __init__(self) -> None:
        self._status_out, self.status_in = os.pipe()
        self.block_out, self._block_in = os.pipe()
        self._open = {self._status_out, self.status_in, self.block_out, self._block_in}
        self._status = b""

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)

    def close_child_ends(self) -> None:
        """Close bwrap's ends in this process, so that an end of file signals bwrap's exit."""
        self._close(self.status_in)
        self._close(self.block_out)

    def first_process(self) -> int | None:
        """Wait for the pid of the namespace's first process; return None if bwrap fails before it exists."""
        deadline = time.monotonic() + _START_S
        while (found := _CHILD.search(self._status + b" ")) is None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._status_out], [], [], left)[0]:
                return None
            chunk = os.read(self._status_out, 4_096)
            if not chunk:
                return None
            self._status += chunk
        return int(found[1])

    def release(self) -> None:
        """Let the command start."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._block_in, b"\n")
        self._close(self._block_in)

    def command_ran(self) -> bool:
        """Return True if the command started. To be called after bwrap's exit."""
        while chunk := os.read(self._status_out, 4_096):
            self._status += chunk
        return _ENDED in self._status

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)


class Namespace:
    """The pid namespace of one command; it ends with its first process."""

    def __init__(self, bwrap: subprocess.Popen[bytes]) -> None:
        self._bwrap = bwrap
        self._first: int | None = None
        self._pid = 0

    def open(self, pid: int | None) -> None:
        """Open a descriptor for the namespace's first process; unlike a pid, it never means another process."""
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                self._first, self._pid = os.pidfd_open(pid), pid

    def limit(self, limits: CommandLimits) -> None:
        """Set the limits on the first process before the command starts; every process inherits them."""
        if self._first is None:
            return
        data, size = limits.memory_mb * 1_000_000, limits.file_mb * 1_000_000
        wanted = [(resource.RLIMIT_DATA, data), (resource.RLIMIT_FSIZE, size), (resource.RLIMIT_CORE, 0)]
        if _kernel() >= (5, 14):  # older kernels count the user's processes outside of the namespace too
            wanted.append((resource.RLIMIT_NPROC, limits.processes))
        for kind, most in wanted:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _lower(self._pid, kind, most)

    def end(self) -> None:
        """Kill every process of the namespace and wait for the end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._bwrap.pid, signal.SIGKILL)
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            poll = select.poll()
            poll.register(self._first, select.POLLIN)
            deadline = time.monotonic() + END_S
            # Thousands of processes can delay the first one's end, so kill them too between the polls.
            while not poll.poll(_POLL_MS) and time.monotonic() < deadline:
                kill_trees([self._pid])
            os.close(self._first)
            self._first = None
        self._bwrap.wait()
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, os.WNOHANG)  # a child of this process if that is a subreaper


def _kernel() -> tuple[int, int]:
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    return int(major), int(minor)


def _lower(pid: int, kind: int, most: int) -> None:
    """Lower a limit of another process; keep a lower limit."""
    _, hard = resource.prlimit(pid, kind)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.prlimit(pid, kind, (most, most))
