"""Finding the programs that lopen itself starts (git, bwrap): never one that a repository brings along."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

_BROUGHT: set[str] = set()  # the projects of this process, links resolved


def distrust(project: Path) -> None:
    """From now on no program in `project` is found: the person stands there, wherever lopen goes on to work.

    A folder of the project may well be on PATH (its virtual environment, its tools); the demo and a replay work in
    a folder of their own, with that same PATH.
    """
    _BROUGHT.add(os.path.realpath(project))


def find_program(name: str, folders: Iterable[str], project: Path) -> str | None:
    """The absolute path of `name` in the first of the absolute `folders` that has it; None where none has.

    Not one in `project`, where whoever wrote the repository, or a command, put it, nor in a distrusted one; links
    resolved.
    """
    for folder in folders:
        found = shutil.which(name, path=folder) if os.path.isabs(folder) else None
        if found and not is_brought(found, project):
            return found
    return None


def is_brought(program: str, project: Path) -> bool:
    """Whether the program lies in `project` or in a distrusted one, links resolved."""
    places = (os.path.join(place, "") for place in (*_BROUGHT, os.path.realpath(project)))
    real = os.path.realpath(program)
    return any(real.startswith(place) for place in places)
