"""A command that goes on while the test does something else: what a test uses of a `Popen`."""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from types import TracebackType

LONGEST_S = 120.0  # a run; one that takes longer is killed and said to hang
SLICE_S = 0.02  # how long one thread that waits keeps the socket from another


class StartedCommand:
    """A run of `lopen` in a fork of the preloaded process, its output in pipes or wherever it was sent."""

    def __init__(self, control: socket.socket, name: str, out: int = -1, err: int = -1) -> None:
        """Wait for the start. `out` and `err` are the ends to read from, -1 without any."""
        self._control = control
        self._name = name
        self._guard = threading.Lock()
        self.returncode: int | None = None
        self.stdout, self.stderr = (
            os.fdopen(end, encoding="utf-8") if end >= 0 else None for end in (out, err)
        )
        control.settimeout(LONGEST_S)
        self.pid = int(control.recv(100).decode().removeprefix("started "))

    def __enter__(self) -> StartedCommand:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        if kind is not None:
            self.kill()
        self.wait(LONGEST_S)

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        return self._told(0.0)

    def wait(self, timeout: float) -> int:
        """Wait for the end of the command; the exit code."""
        deadline = time.monotonic() + timeout
        while (code := self._told(SLICE_S)) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self._name, timeout)
        return code

    def _told(self, wait_s: float) -> int | None:
        with self._guard:
            if self.returncode is None and select.select([self._control], [], [], wait_s)[0]:
                self.returncode = int(self._control.recv(100).decode().removeprefix("ended "))
                self._control.close()
            return self.returncode

    def communicate(self, timeout: float = LONGEST_S) -> tuple[str, str]:
        """Read both pipes to their ends and wait for the exit code."""
        texts = ["", ""]

        def read(number: int, stream: io.TextIOWrapper) -> None:
            texts[number] = stream.read()

        pipes = [(n, pipe) for n, pipe in enumerate((self.stdout, self.stderr)) if pipe is not None]
        readers = [threading.Thread(target=read, args=pipe, daemon=True) for pipe in pipes]
        deadline = time.monotonic() + timeout
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self._name, timeout)
        self.wait(max(SLICE_S, deadline - time.monotonic()))
        return texts[0], texts[1]

    def send_signal(self, number: int) -> None:
        """Send a signal unless the command has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended, and its end is not told yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the command."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the command to end."""
        self.send_signal(signal.SIGTERM)
