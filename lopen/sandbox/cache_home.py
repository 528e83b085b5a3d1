"""Folders below `.lopen/cache` that commands write to: made where they are missing, never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lopen.sandbox.command import SandboxFailed

_CACHE = (".lopen", "cache")


def cache_home(root: Path) -> Path:
    """`.lopen/cache/home`, the HOME of every command."""
    return cache_folder(root, "home")


def cache_folder(root: Path, name: str) -> Path:
    """The folder `name`, real all the way down. What a repository or a command put in its way is taken away
    below `.lopen/cache` (it can be deleted at any time), and refused above it.
    """
    place = root
    for depth, part in enumerate((*_CACHE, name)):
        place = place / part
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            place.mkdir(exist_ok=True)
            continue
        if stat.S_ISDIR(mode):
            continue
        if depth == 0:
            raise SandboxFailed(f"{place} is no folder", hint="remove it, then: lopen init")
        os.unlink(place)
        place.mkdir()
    return place
