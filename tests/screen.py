"""A command in a real terminal: a tmux server of its own, whose window is resized and whose scrollback is read."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.needs import lacking

TIMEOUT_S = 60
POLL_S = 0.05
KEPT_LINES = 50_000


class Screen:
    """One window of `width` × `height` that runs a command; `EXIT n` is its last line once the command has ended."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        width: int,
        height: int = 30,
    ) -> None:
        """Run `command` in `folder`."""
        if shutil.which("tmux") is None:
            lacking("tmux")
        self._sockets = tempfile.TemporaryDirectory(prefix="screen-")  # the path of a socket has to be short
        self._socket = f"{self._sockets.name}/tmux"
        run = f"trap : INT; {shlex.join(command)}; echo EXIT $?; exec sleep 600"  # Ctrl-C ends the command alone
        size = ["-x", str(width), "-y", str(height)]
        self._start = ["new-session", "-d", "-c", str(folder), *size, run]
        self._environ = {**environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}

    def __enter__(self) -> Self:
        settings = f"set-option -g history-limit {KEPT_LINES} ; set-option -g status off".split()
        self._tmux("-f", "/dev/null", "start-server", ";", *settings, ";", *self._start)
        self._tmux("set-option", "-g", "window-size", "manual")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")
        self._sockets.cleanup()

    def _tmux(self, *arguments: str) -> str:
        ran = subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        return ran.stdout

    def resize(self, width: int, height: int = 30) -> None:
        """Change the size of the window."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def type(self, keys: str) -> None:
        """Press keys, by tmux's names."""
        self._tmux("send-keys", keys)

    def shown(self) -> list[str]:
        """Return the rows on the screen, top to bottom, without blanks at their ends and blank rows at the end."""
        return self._tmux("capture-pane", "-p").rstrip("\n").splitlines()

    def everything(self) -> list[str]:
        """Return the lines of the scrollback and the screen; a line that is wrapped is one line."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-").rstrip("\n").splitlines()

    def until(self, reached: Callable[[list[str]], bool]) -> list[str]:
        """Wait until the rows on the screen are as wanted; return them."""
        deadline = time.monotonic() + TIMEOUT_S
        while not reached(rows := self.shown()):
            if time.monotonic() > deadline:
                raise AssertionError("not reached:\n" + "\n".join(rows))
            time.sleep(POLL_S)
        return rows

    def until_end(self) -> int:
        """Wait for the end of the command; return its exit code."""
        rows = self.until(lambda rows: any(row.startswith("EXIT ") for row in rows))
        return int(next(row for row in rows if row.startswith("EXIT ")).split()[1])


def lopen(*arguments: str) -> list[str]:
    """Return the command line of lopen."""
    return [sys.executable, "-m", "lopen", *arguments]
