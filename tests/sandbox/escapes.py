"""Attempts of a command to get out of its sandbox, or at what is protected in it; `escapes.txt` holds the table.

A heading names a class of attempts and the modes that have to withstand it; a row is a name and a line for the
shell. Whatever the line does, the same things are looked at afterwards (`world.py`): nothing outside changed, no
canary came out, git's folder is what it was (under bubblewrap), nobody connected to the host's sockets, no process is left, the bystander lives.
Every row is harmless where it succeeds: it can only reach folders and processes made for the test.

Words in braces: root, beside (a folder outside that stays visible), outside (one in the temporary folder),
home (the person's), python (an interpreter with its options), token (names a process), bystander (the
number of a process outside), port (of a listener on the host's loopback), socket and beside_socket (paths
of listeners), abstract (the name of an abstract one), lopen (the number of the process that runs the sandbox),
reach (a program that tries to reach what the kernel holds: `reach.py`) and what it may reach (`kernel_things.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lopen.sandbox.choice import Mode

ALL: tuple[Mode, ...] = ("bwrap", "landlock", "none")
MODES: dict[str, tuple[Mode, ...]] = {"all": ALL, "confined": ("bwrap", "landlock"), "strong": ("bwrap",)}
HEADING = re.compile(r"# (?P<kind>.+) \((?P<modes>\w+)\)")


class Attempt(NamedTuple):
    """One row: a name, the modes that have to withstand it, and a line for the shell."""

    name: str
    modes: tuple[Mode, ...]
    line: str


def _rows() -> Iterator[Attempt]:
    modes = ALL
    for line in (Path(__file__).parent / "escapes.txt").read_text("utf-8").splitlines():
        if heading := HEADING.match(line):
            modes = MODES[heading["modes"]]
        elif line:
            name, shell_line = line.split(" :: ", 1)
            yield Attempt(name, modes, shell_line)


ATTEMPTS: list[Attempt] = [*_rows()]
