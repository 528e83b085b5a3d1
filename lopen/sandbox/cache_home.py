"""`.lopen/cache/home`, the HOME of every command: made where it is missing, never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lopen.sandbox.command import SandboxFailed

PARTS = (".lopen", "cache", "home")


def cache_home(root: Path) -> Path:
    """The folder, real all the way down. What a repository or a command put in its way is taken away
    below `.lopen/cache` (it can be deleted at any time), and refused above it.
    """
    place = str(root)
    for depth, name in enumerate(PARTS):
        place = f"{place}/{name}"
        try:
            mode = os.lstat(place).st_mode
        except FileNotFoundError:
            os.makedirs(place, exist_ok=True)
            continue
        if stat.S_ISDIR(mode):
            continue
        if depth == 0:
            raise SandboxFailed(f"{place} is no folder", hint="remove it, then: lopen init")
        os.unlink(place)
        os.mkdir(place)
    return Path(place)
