"""A command at a pseudo-terminal: what it shows, and answers typed when it asks."""

from __future__ import annotations

import os
import pty
import select
import struct
import termios
import time
from collections.abc import Sequence
from fcntl import ioctl

from tests.preloaded.shared import start_lopen
from tests.project import TIMEOUT_S, Project


def on_a_terminal(
    project: Project,
    *arguments: str,
    answers: Sequence[tuple[bytes, bytes]] = (),
    columns: int = 120,
    **variables: str,
) -> tuple[int, bytes]:
    """Run a command at a terminal; return its exit code and every byte the terminal got.

    `answers` are pairs: the text that is waited for, and what is typed then. Without any, standard input is empty.
    """
    mine, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**project.environment(**variables), "TERM": "xterm-256color"}
    with open(os.devnull, encoding="utf-8") as nothing:
        given = theirs if answers else nothing.fileno()
        process = start_lopen(project.root, environment, arguments, (given, theirs, theirs))
    os.close(theirs)
    shown, waiting, seen = b"", list(answers), 0
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < deadline and select.select([mine], [], [], TIMEOUT_S)[0]:
            try:
                piece = os.read(mine, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
            while waiting and (found := shown.find(waiting[0][0], seen)) >= 0:
                wanted, typed = waiting.pop(0)
                seen = found + len(wanted)
                os.write(mine, typed)
        return process.wait(TIMEOUT_S), shown
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        os.close(mine)
