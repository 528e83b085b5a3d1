"""Runs of `lopen` from a preloaded process: whole, killed at a system call, or with a system call that fails."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from tests.preloaded import watched
from tests.preloaded.started import LONGEST_S, StartedCommand
from tests.ran import HERE, Ran

# What to do about a call: let it go on, fail with an errno, kill lopen alone, or kill the whole tree.
Fate = int | Literal["go on", "kill lopen", "kill all"]
Decide = Callable[[watched.Call, bool], Fate]
Orphans = Literal["ended", "waited for", "left"]


class Hung(Exception):
    """A run did not end."""


@dataclass
class Outcome:
    """How a run ended: `code` is negative for a signal. `calls` are the watched calls, in order."""

    ran: Ran
    killed: bool
    calls: list[tuple[str, bool]] = field(default_factory=list)  # name, and whether lopen itself made it

    @property
    def code(self) -> int:
        return self.ran.code


class Preloaded:
    """The preloaded process, as a context manager."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.preloaded.server", str(theirs.fileno())],
                cwd=HERE,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def __enter__(self) -> Preloaded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close()
        self._process.wait(LONGEST_S)

    def run(
        self,
        cwd: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        *,
        decide: Decide | None = None,
        arrange: Sequence[Sequence[Any]] = (),
        orphans: Orphans = "ended",
        stdin: str = "",
    ) -> Outcome:
        """Run a command to its end. `decide` is asked before every watched call.

        `arrange` are calls made in the run's process first. `orphans`: what lopen left running is ended, waited
        for, or no concern of the run's, as after any command.
        """
        request = {
            "cwd": str(cwd),
            "environment": dict(environment),
            "arguments": list(arguments),
            "arrange": [list(call) for call in arrange],
            "watch": decide is not None,
            "orphans": orphans,
        }
        with ExitStack() as opened:
            given, out, err = (opened.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            given.write(stdin.encode())
            given.seek(0)
            ours = opened.enter_context(self._send(request, given.fileno(), out.fileno(), err.fileno()))
            outcome = _Following(ours, decide).to_the_end()
            texts = [_text(stream) for stream in (out, err)]
        outcome.ran = Ran(outcome.ran.code, *texts)
        return outcome

    def start(
        self, cwd: Path, environment: Mapping[str, str], arguments: Sequence[str], streams: Sequence[int] = ()
    ) -> StartedCommand:
        """Start a command that goes on by itself.

        `streams` are descriptors for its standard streams; without them its input is empty and two pipes take
        its output.
        """
        request = {"cwd": str(cwd), "environment": dict(environment), "arguments": list(arguments)}
        name = f"lopen {' '.join(arguments)}"
        if streams:
            return StartedCommand(self._send(request, *streams), name)
        out, err = os.pipe(), os.pipe()
        with open(os.devnull, encoding="utf-8") as nothing:
            control = self._send(request, nothing.fileno(), out[1], err[1])
        os.close(out[1])
        os.close(err[1])
        return StartedCommand(control, name, out[0], err[0])

    @property
    def descriptor(self) -> int:
        """The socket that takes requests, for `tests/preloaded/launcher.py` to inherit."""
        return self._requests.fileno()

    def _send(self, request: Mapping[str, Any], *streams: int) -> socket.socket:
        """Have a run started; the socket on which it tells how it goes."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._requests, [json.dumps(request).encode()], [theirs.fileno(), *streams])
        return ours


def _text(stream: Any) -> str:
    stream.seek(0)
    return bytes(stream.read()).decode("utf-8", "replace")


class _Following:
    """One run, from its start to the last process it left."""

    def __init__(self, control: socket.socket, decide: Decide | None) -> None:
        self._control = control
        self._decide = decide
        self._listener = -1
        self._lopen = 0
        self._threads: dict[int, bool] = {}
        self._code: int | None = None
        self._killed: Fate = "go on"
        self._calls: list[tuple[str, bool]] = []

    def to_the_end(self) -> Outcome:
        deadline = time.monotonic() + LONGEST_S
        try:
            while not self._step(deadline - time.monotonic()):
                pass
        finally:
            if self._listener >= 0:
                os.close(self._listener)
        assert self._code is not None
        return Outcome(Ran(self._code, "", ""), self._killed != "go on", self._calls)

    def _step(self, left: float) -> bool:
        """Wait for one thing and answer it; True once the run and all it left are gone."""
        if left < 0:
            if self._lopen:
                os.kill(self._lopen, signal.SIGKILL)
            raise Hung(f"{len(self._calls)} calls so far, the last {self._calls[-3:]}")
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        if self._listener >= 0 and self._lopen:  # whose call it is must be known first
            poll.register(self._listener, select.POLLIN)
        for descriptor, event in poll.poll(left * 1000):
            if descriptor == self._listener:
                if event & select.POLLHUP:
                    os.close(self._listener)
                    self._listener = -1
                else:
                    self._asked()
            elif self._told():
                return True
        return False

    def _told(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        word, _, value = data.decode().partition(" ")
        match word:
            case "watched":
                self._listener = descriptors[0]
            case "started":
                self._lopen = int(value)
            case "ended":
                self._code = int(value)
            case _:
                return True
        return False

    def _asked(self) -> None:
        call = watched.receive(self._listener)
        if call is None:
            return
        own = self._is_lopens(call.pid)
        self._calls.append((call.name, own))
        assert self._decide is not None
        fate = self._decide(call, own) if self._killed == "go on" else self._killed
        if isinstance(fate, int):
            watched.answer(self._listener, call, fails_with=fate)
        elif fate == "go on":
            watched.answer(self._listener, call)
        else:
            if self._killed == "go on":
                os.kill(self._lopen, signal.SIGKILL)
            self._killed = fate
            if fate == "kill lopen" and not own:
                watched.answer(self._listener, call)

    def _is_lopens(self, thread: int) -> bool:
        """Whether a thread is lopen's own and not of a process it started."""
        if thread not in self._threads:
            self._threads[thread] = os.path.isdir(f"/proc/{self._lopen}/task/{thread}")
        return self._threads[thread]
