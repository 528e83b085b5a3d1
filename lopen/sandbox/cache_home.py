"""Folders below `.lopen/cache` that commands write to: made where they are missing, never through a link."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from lopen.sandbox.command import SandboxFailed

VERIFY = "verify"  # below .lopen/cache: what verify commands and hooks alone write, where the sandbox can see to it
_CACHE = (".lopen", "cache")


def cache_home(root: Path) -> Path:
    """`.lopen/cache/home`, the HOME of every command."""
    return cache_folder(root, "home")


def python_variables(root: Path, *, trusted: bool) -> dict[str, str]:
    """Where Python finds packages of a user without a virtual environment, and what it compiled.

    Both run inside of whatever Python program starts next. So packages lie where only trusted commands (verify
    commands, hooks) install them, for all to import; and what a trusted command loads, trusted ones compiled.
    """
    own = f"{root}/.lopen/cache/{VERIFY}"
    compiled = {"PYTHONPYCACHEPREFIX": f"{own}/pycache"} if trusted else {}
    return {"PYTHONUSERBASE": f"{own}/python", **compiled}


def forget_compiled(root: Path) -> None:
    """Take away what was compiled for trusted commands, where other commands could write it too."""
    shutil.rmtree(cache_folder(root, VERIFY) / "pycache", ignore_errors=True)


def cache_folder(root: Path, name: str) -> Path:
    """The folder `name`, real all the way down. What a repository or a command put in its way is taken away
    below `.lopen/cache` (it can be deleted at any time), and refused above it.
    """
    place = str(root)
    for depth, part in enumerate((*_CACHE, name)):
        place = f"{place}/{part}"
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
