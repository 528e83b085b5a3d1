"""Single keys at a terminal: read without waiting, and not echoed, so that typing does not disturb the live view."""

from __future__ import annotations

import os
import select
import sys
import termios
from contextlib import suppress
from typing import TextIO


def in_foreground(descriptor: int) -> bool:
    """False for a background job of the shell: to change the terminal, or to read from it, would stop it."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # not this process's controlling terminal: no job control
        return True


class Keyboard:
    """The keys of the terminal that `out` writes to, between `open` and `close`. Ctrl-C and Ctrl-Z keep their meaning."""

    def __init__(self, out: TextIO) -> None:
        self._terminal = out.fileno()
        self._before: list[object] | None = None

    @property
    def readable(self) -> bool:
        """True if standard input is a terminal too."""
        try:
            return sys.stdin.isatty()
        except ValueError:  # closed
            return False

    def open(self) -> None:
        """Stop the terminal from echoing keys and from collecting whole lines."""
        if self._before is not None or not in_foreground(self._terminal):
            return
        with suppress(termios.error):
            self._before = termios.tcgetattr(self._terminal)
            after = termios.tcgetattr(self._terminal)
            after[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(self._terminal, termios.TCSANOW, after)

    def close(self) -> None:
        """Restore the terminal's modes."""
        before, self._before = self._before, None
        if before is not None and in_foreground(self._terminal):
            with suppress(termios.error):
                termios.tcsetattr(self._terminal, termios.TCSANOW, before)  # type: ignore[arg-type]

    def pressed(self) -> str:
        """Return the keys pressed since the last call."""
        if self._before is None or not self.readable or not in_foreground(sys.stdin.fileno()):
            return ""
        descriptor = sys.stdin.fileno()
        if not select.select([descriptor], [], [], 0)[0]:
            return ""
        with suppress(OSError):
            return os.read(descriptor, 64).decode("ascii", "ignore")
        return ""
