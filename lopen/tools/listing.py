"""Which files a project has, as the model sees them: what git would, or a bounded walk without git."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lopen.tools.protection import read_protection

MAX_LISTED = 2_000
MAX_WALKED = 200_000

ListTracked = Callable[[], Sequence[str]]
"""Paths git knows or would add (`git ls-files -co --exclude-standard -z`), relative to the root."""

DERIVED_FOLDERS = frozenset(
    {
        "__pycache__",
        ".hypothesis",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "node_modules",
        "target",
        "venv",
    }
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Files, sorted, relative to the root. `note` says what a truncated one left out and how to see it."""

    files: tuple[str, ...]
    truncated: bool
    note: str = ""


def walk(root: Path) -> list[str]:
    """Every file below `root` without git's help: no links followed, derived and private folders left out."""
    found: list[str] = []
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(f for f in folders if f not in DERIVED_FOLDERS and not read_protection([f]))
        base = os.path.relpath(folder, root)
        found.extend(name if base == "." else f"{base}/{name}" for name in sorted(files))
        if len(found) > MAX_WALKED:
            break
    return found


def readable_below(
    paths: Sequence[str], folder: tuple[str, ...], wanted: Callable[[Sequence[str]], bool]
) -> Iterator[str]:
    """Those of `paths` that lie in `folder`, may be read, and whose path from `folder` on is `wanted`."""
    depth = len(folder)
    for path in sorted(paths):
        parts = tuple(path.split("/"))
        inside = parts[:depth] == folder and len(parts) > depth
        if inside and wanted(parts[depth:]) and not read_protection(parts):
            yield path
