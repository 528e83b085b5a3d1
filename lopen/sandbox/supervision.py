"""Following one running command: its output, its deadline, its limits. What ends it is the adapter's."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lopen.sandbox.command import Command, CommandResult, KilledBy, Limits
from lopen.sandbox.crowd import TICK_S, Crowd
from lopen.sandbox.output import Output

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
    limits: Limits,
    *,
    tops: Callable[[], Iterable[int]],
    end: Callable[[], None],
) -> CommandResult:
    """Read until the command exits, its time is up or a limit is passed; then `end` everything it started.

    `tops` are the processes below which its own are counted. `end` kills and reaps; it is called exactly
    once, also where a signal unwinds this process.
    """
    started = time.monotonic()
    output = Output(command.output_limit)
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
    output: Output,
    deadline: float,
    limits: Limits,
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


def _read_into(output: Output, pipe: int) -> bool:
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
