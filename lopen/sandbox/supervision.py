"""Following one running command: its output, its deadline, its limits. What ends it is the adapter's."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lopen.sandbox.command import Command, CommandLimits, CommandResult, KilledBy
from lopen.sandbox.process_tree import LINUX, descendants, read_whole

_POLL_S = 0.01  # where the kernel cannot tell us of an exit
_CHUNK = 65_536


def spawn(
    argv: Sequence[str], env: Mapping[str, str], *, cwd: str | None = None, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, without input, both streams in one pipe."""
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


def follow(
    process: subprocess.Popen[bytes],
    command: Command,
    limits: CommandLimits,
    *,
    tops: Callable[[], Iterable[int]],
    end: Callable[[], None],
) -> CommandResult:
    """Read until the command exits, its time is up or a limit is passed; then `end` everything it started.

    `tops` are the processes below which its own are counted. `end` kills and reaps; it is called exactly
    once, also where a signal unwinds this process.
    """
    started = time.monotonic()
    output = CommandOutput(command.output_limit)
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    try:
        killed_by = _watch(process, pipe, output, started + command.timeout_s, limits, tops)
    finally:
        end()
    for chunk in _pending(pipe):
        output.add(chunk)
    process.stdout.close()
    text, truncated = output.text()
    return CommandResult(
        exit_code=_exit_code(process.returncode),
        output=text,
        truncated=truncated,
        timed_out=killed_by == "timeout",
        seconds=time.monotonic() - started,
        killed_by=killed_by,
    )


def _watch(
    process: subprocess.Popen[bytes],
    pipe: int,
    output: CommandOutput,
    deadline: float,
    limits: CommandLimits,
    tops: Callable[[], Iterable[int]],
) -> KilledBy:
    """Why the command has to be killed, "" where it exited by itself."""
    crowd = Crowd(process.pid, limits.processes, tops)
    with selectors.DefaultSelector() as selector, _exit_of(process) as exited:
        selector.register(pipe, selectors.EVENT_READ)
        if exited is not None:
            selector.register(exited, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            ready = selector.select(min(left, TICK_S if exited is not None else _POLL_S))
            for key, _ in ready:
                if key.fd == pipe and not _read_into(output, pipe):
                    selector.unregister(pipe)
            if any(key.fd == exited for key, _ in ready) or (exited is None and process.poll() is not None):
                return ""
            if output.total > limits.output_mb * 1_000_000:
                return "output"
            if crowd.too_large():
                return "processes"
    return "timeout"


@contextlib.contextmanager
def _exit_of(process: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process exits; None where the kernel has none."""
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
    """False once every writer has closed the pipe."""
    try:
        chunk = os.read(pipe, _CHUNK)
    except BlockingIOError:
        return True
    output.add(chunk)
    return bool(chunk)


def _pending(pipe: int) -> Iterator[bytes]:
    """What still lies in the pipe; never waits, should something keep it open."""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(pipe, _CHUNK):
            yield chunk


def _exit_code(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode


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


_NOTE_ROOM = 160
_WIDEST = 4  # bytes a character takes at most in UTF-8


class CommandOutput:
    """Gathers bytes, gives at most `limit` characters of text."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._keep = limit * _WIDEST
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take what came next."""
        self.total += len(chunk)
        room = self._keep - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._keep:
            del self._tail[: -self._keep]

    def text(self) -> tuple[str, bool]:
        """(text, whether its middle was cut). What is missing, and how to see it, stands where it was cut."""
        gapless = self.total == len(self._head) + len(self._tail)
        head = _decode(self._head + self._tail) if gapless else _decode(self._head)
        if gapless and len(head) <= self._limit:
            return head, False
        tail = head if gapless else _decode(_from_character(self._tail))
        room = max(0, self._limit - _NOTE_ROOM)
        first, last = head[: room // 3], tail[-max(1, room - room // 3) :]
        missing = max(0, self.total - len(first.encode()) - len(last.encode()))
        note = f"\n[… {missing} bytes cut; see them with the output in a file, or through head, tail or grep …]\n"
        return (first + note + last)[: self._limit], True


def _decode(raw: bytearray) -> str:
    return raw.decode("utf-8", "replace")


def _from_character(raw: bytearray) -> bytearray:
    """Without the end of a character whose start was cut off."""
    start = 0
    while start < min(_WIDEST - 1, len(raw)) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:]
