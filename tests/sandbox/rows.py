"""A row of the table of attempts."""

from __future__ import annotations

from typing import NamedTuple

from lopen.sandbox.choice import Mode

STRONG: tuple[Mode, ...] = ("bwrap",)
CONFINED: tuple[Mode, ...] = ("bwrap", "landlock")
ALL: tuple[Mode, ...] = ("bwrap", "landlock", "none")


class Attempt(NamedTuple):
    """One row: a name, the modes that have to withstand it, and a line for the shell."""

    name: str
    modes: tuple[Mode, ...]
    line: str


def rows(modes: tuple[Mode, ...], text: str) -> list[Attempt]:
    """Rows from lines of the form `name :: shell line`."""
    pairs = (line.split(" :: ", 1) for line in text.strip().splitlines())
    return [Attempt(name.strip(), modes, line.strip()) for name, line in pairs]
