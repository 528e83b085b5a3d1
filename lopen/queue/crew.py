"""The crew: processes of lopen that build modules, so many at a time, each in its module's own clone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lopen.core.errors import ExitCode, Stopped
from lopen.queue.builds import BuildSource, Ending
from lopen.store.folder import state_folder

POLL_S = 0.2
LAST_BYTES = 20_000  # of a process's output: where its last words are


@dataclass(frozen=True)
class Worker:
    """A process that builds a module."""

    module: str
    process: subprocess.Popen[bytes]
    output: Path
    began: float

    def ending(self) -> Ending | None:
        """Return how the build ended; None while it goes on."""
        code = self.process.poll()
        if code is None:
            return None
        reason, command = ("", "") if code in (0, 3) else last_words(self.output)
        ended = ExitCode(code) if code in set(ExitCode) else ExitCode.FAILED
        if code < 0:  # by a signal
            reason = f"its process was ended by {signal.Signals(-code).name}"
        return Ending(self.module, ended, time.monotonic() - self.began, reason, command)


def last_words(output: Path) -> tuple[str, str]:
    """Return message and hint of the error that a process ended with; empty if it told none."""
    with suppress(OSError), output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - LAST_BYTES))
        for line in reversed(file.read().decode("utf-8", "replace").splitlines()):
            with suppress(ValueError, TypeError, KeyError):
                told = json.loads(line)
                if told["event"] == "error":
                    return str(told["message"]), str(told.get("command") or "")
    return "", ""


class Crew:
    """Builds what a source gives, `jobs` modules at a time.

    `arguments` gives the command line of a build. `watch` is called a few times a second with the modules that run.
    """

    def __init__(
        self,
        root: Path,
        jobs: int,
        arguments: Callable[[str], Sequence[str]],
        watch: Callable[[Sequence[str]], None],
        say: Callable[[str], None],
    ) -> None:
        self._root = root
        self._jobs = jobs
        self._arguments = arguments
        self._watch = watch
        self._say = say
        self._workers: list[Worker] = []

    def work(self, source: BuildSource) -> None:
        """Build until nothing is left. A signal pauses all builds and raises `Stopped`; a second one ends them at once."""
        try:
            while self._workers or source.open:
                while len(self._workers) < self._jobs and (module := source.take()) is not None:
                    self._workers.append(self._start(module))
                self._wait(source)
        except Stopped:
            self._pause(source)
            raise
        finally:
            self._kill()

    def _wait(self, source: BuildSource) -> None:
        time.sleep(POLL_S)
        for worker in tuple(self._workers):
            if (ending := worker.ending()) is not None:
                self._workers.remove(worker)
                source.ended(ending)
        self._watch([worker.module for worker in self._workers])

    def _start(self, module: str) -> Worker:
        output = state_folder(self._root) / "logs" / f"build-{module}.log"
        output.parent.mkdir(mode=0o700, exist_ok=True)
        output.unlink(missing_ok=True)
        output.touch(0o600)
        with output.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "lopen", "-C", str(self._root), *self._arguments(module)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
            )
        return Worker(module, process, output, time.monotonic())

    def _pause(self, source: BuildSource) -> None:
        """Interrupt every build, which saves its work, and wait until all have ended; the next signal ends them at once."""
        source.stop()
        self._say("pausing; another signal ends the builds at once")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: self._kill())
        for worker in self._workers:
            worker.process.send_signal(signal.SIGINT)
        while self._workers:
            self._wait(source)

    def _kill(self) -> None:
        """End what still runs at once."""
        for worker in self._workers:
            with suppress(ProcessLookupError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
