"""The specifications in a project, which no command may change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lopen.core.stat_cache import kinds_in
from lopen.files.protection import SPECIFICATION, plain


def specifications(root: Path) -> Iterator[str]:
    """Yield `specs/**/SPECIFICATION.md` in any case, the links that point to one, and their targets."""
    whole = str(root)
    first = f"{whole}/specs"
    pending, seen = [os.path.realpath(first) if os.path.islink(first) else first], set[str]()
    while pending:
        top = pending.pop()
        if top not in seen and (top == whole or top.startswith(whole.rstrip("/") + "/")):
            seen.add(top)
            yield from _specifications_below(whole, top, pending)


def _specifications_below(root: str, top: str, pending: list[str]) -> Iterator[str]:
    """Yield the specifications below one folder; append the targets of its links to `pending`."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        base = folder.removeprefix(root).lstrip("/")
        found = kinds_in(folder)
        yield from (f"{base}/{name}" for name in found.files if plain(name) == SPECIFICATION)
        for name in found.links:
            place = f"{folder}/{name}"
            if not os.path.isdir(place):
                yield from (f"{base}/{name}",) if plain(name) == SPECIFICATION else ()
            elif os.path.lexists(f"{place}/SPECIFICATION.md"):
                yield f"{base}/{name}"
                pending.append(os.path.realpath(place))
        waiting += (f"{folder}/{name}" for name in found.folders)
