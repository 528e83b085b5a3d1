"""Find the programs that lopen itself starts (git, bwrap), never one from a repository."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

_BROUGHT: set[str] = set()  # the projects of this process, links resolved


def distrust(project: Path) -> None:
    """Exclude the programs in `project` from now on, wherever lopen works later.

    A folder of the project can be on PATH (its virtual environment, its tools). The demo and a replay work in other
    folders with the same PATH.
    """
    _BROUGHT.add(os.path.realpath(project))


def find_program(name: str, folders: Iterable[str], project: Path) -> str | None:
    """Return the absolute path of `name` in the first of the absolute `folders` that has it, None if none has.

    Skip programs in `project` or in a distrusted project, with links resolved: the repository's author or a command
    may have put them there.
    """
    for folder in folders:
        found = shutil.which(name, path=folder) if os.path.isabs(folder) else None
        if found and not is_brought(found, project):
            return found
    return None


def find_on_path(name: str, project: Path) -> str | None:
    """Return the program of the person's PATH, as `find_program` does."""
    return find_program(name, os.environ.get("PATH", os.defpath).split(os.pathsep), project)


def is_brought(program: str, project: Path) -> bool:
    """Return True if the program is in `project` or in a distrusted project, with links resolved."""
    places = (os.path.join(place, "") for place in (*_BROUGHT, os.path.realpath(project)))
    real = os.path.realpath(program)
    return any(real.startswith(place) for place in places)
