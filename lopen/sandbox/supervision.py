"""Supervise one running command: its output, its deadline, its limits. The adapter provides the way to end it.

Limits of the kernel apply to each process (setrlimit(2)), so the number and the memory of the whole tree are measured
while the command runs. Between two measurements a tree can exceed a limit; the limits of each process bound by how much.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lopen.sandbox.command import Command, CommandLimits, CommandResult, KilledBy
from lopen.sandbox.kernel_filter import join_new_keyring
from lopen.sandbox.process_tree import LINUX, descendants, read_kernel_file

_TICK_S = 0.02
_TREE_S = 0.25  # reading the whole tree takes milliseconds
_OWN_MEMORY = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_SHARE = re.compile(rb"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_POLL_S = 0.01  # for systems without a descriptor for an exit
_CHUNK = 65_536
_REASONS = {
    "output": "more than {limits.output_mb} MB of output",
    "processes": "more than {limits.processes} processes and threads",
    "memory": "its processes used more than {limits.memory_mb} MB of memory together",
}


def spawn(
    argv: Sequence[str], env: Mapping[str, str], *, cwd: str | None = None, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start `argv` in a new session and with a new session keyring, without input, both output streams in one pipe."""
    join_new_keyring()
    process = subprocess.Popen(
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=pass_fds,
        bufsize=0,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return process


def supervise(
    process: subprocess.Popen[bytes],
    command: Command,
    limits: CommandLimits,
    *,
    roots: Callable[[], Iterable[int]],
    end: Callable[[], None],
) -> CommandResult:
    """Read until the command exits, times out or exceeds a limit; then `end` everything that it started.

    `roots` are the roots of the process trees to count. `end` kills and reaps; it is called exactly once, even if
    a signal unwinds this process.
    """
    started = time.monotonic()
    output = CommandOutput(command.output_limit)
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    try:
        tree = TreeLimits(limits, roots)
        killed_by = _read_until_end(process, pipe, output, started + command.timeout_s, command, limits, tree)
    finally:
        end()
    for chunk in _drain(pipe):
        output.add(chunk)
    process.stdout.close()
    text, truncated = output.text()
    if reason := _REASONS.get(killed_by):
        text += f"\n[stopped: {reason.format(limits=limits)}]\n"
    return CommandResult(
        exit_code=_exit_code(process.returncode),
        output=text,
        truncated=truncated,
        timed_out=killed_by == "timeout",
        seconds=time.monotonic() - started,
        killed_by=killed_by,
    )


def _read_until_end(
    process: subprocess.Popen[bytes],
    pipe: int,
    output: CommandOutput,
    deadline: float,
    command: Command,
    limits: CommandLimits,
    tree: TreeLimits,
) -> KilledBy:
    """Read the output; return the reason to kill the command, "" if it exited by itself."""
    with selectors.DefaultSelector() as selector, _exit_descriptor(process) as exited:
        selector.register(pipe, selectors.EVENT_READ)
        if exited is not None:
            selector.register(exited, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            ready = selector.select(min(left, _TICK_S if exited is not None else _POLL_S))
            for key, _ in ready:
                if key.fd == pipe and not _read_into(output, pipe):
                    selector.unregister(pipe)
            if any(key.fd == exited for key, _ in ready) or (exited is None and process.poll() is not None):
                return ""
            if command.cancelled is not None and command.cancelled.is_set():
                return "cancelled"
            if output.total > limits.output_mb * 1_000_000:
                return "output"
            if exceeded := tree.exceeded():
                return exceeded
    return "timeout"


@contextlib.contextmanager
def _exit_descriptor(process: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """Yield a descriptor that becomes readable when the process exits; None if the kernel has no such descriptors."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_into(output: CommandOutput, pipe: int) -> bool:
    """Read once; return False if every writer has closed the pipe."""
    try:
        chunk = os.read(pipe, _CHUNK)
    except BlockingIOError:
        return True
    output.add(chunk)
    return bool(chunk)


def _drain(pipe: int) -> Iterator[bytes]:
    """Yield the rest of the pipe's content without waiting for a process that keeps it open."""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(pipe, _CHUNK):
            yield chunk


def _exit_code(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode


_NOTE_LENGTH = 160
_MAX_BYTES = 4  # the longest UTF-8 encoding of a character


class CommandOutput:
    """Collects bytes and returns at most `limit` characters of text."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._keep = limit * _MAX_BYTES
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Append the next bytes."""
        self.total += len(chunk)
        room = self._keep - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]

    def text(self) -> tuple[str, bool]:
        """Return (text, truncated). A truncated text has a note in its middle on the missing bytes."""
        complete = self.total == len(self._head) + len(self._tail)
        head = _decode(self._head + self._tail) if complete else _decode(self._head)
        if complete and len(head) <= self._limit:
            return head, False
        tail = head if complete else _decode(_from_character(self._tail))
        room = max(0, self._limit - _NOTE_LENGTH)
        first, last = head[: room // 3], tail[-max(1, room - room // 3) :]
        missing = max(0, self.total - len(first.encode()) - len(last.encode()))
        note = f"\n[… {missing} bytes omitted; write the output to a file, or use head, tail or grep …]\n"
        return (first + note + last)[: self._limit], True


def _decode(raw: bytearray) -> str:
    return raw.decode("utf-8", "replace")


def _from_character(raw: bytearray) -> bytearray:
    """Skip the last bytes of a character whose first bytes are missing."""
    start = 0
    while start < min(_MAX_BYTES - 1, len(raw)) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:]


class TreeLimits:
    """The limits on everything below `roots()`. Linux only."""

    def __init__(self, limits: CommandLimits, roots: Callable[[], Iterable[int]]) -> None:
        self._limits = limits
        self._roots = roots
        self._measured = time.monotonic()

    def exceeded(self) -> KilledBy:
        """Return the limit that the tree exceeds, "" for none. Measure four times a second."""
        now = time.monotonic()
        if not LINUX or now - self._measured < _TREE_S:
            return ""
        self._measured = now
        tree = descendants(self._roots())
        if sum(process.threads for process in tree) > self._limits.processes:
            return "processes"
        return "memory" if self._uses_too_much_memory([process.pid for process in tree]) else ""

    def _uses_too_much_memory(self, pids: Sequence[int]) -> bool:
        """Add the memory of the processes, first with shared pages counted for each of them, which is fast."""
        most = self._limits.memory_mb * 1_000_000 // 1_024
        if sum(_sum(f"/proc/{pid}/status", _OWN_MEMORY) for pid in pids) <= most:
            return False
        return sum(_sum(f"/proc/{pid}/smaps_rollup", _SHARE) for pid in pids) > most


def _sum(path: str, field: re.Pattern[bytes]) -> int:
    """Return the sum of a field's values, 0 if the file is not readable or gone."""
    with contextlib.suppress(OSError):
        return sum(map(int, field.findall(read_kernel_file(path))))
    return 0
