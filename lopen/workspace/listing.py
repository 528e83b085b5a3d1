"""Which files a project has, as the model sees them: what git would, or a bounded walk without git."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lopen.workspace.protection import ToolRefused, read_protection

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


MAX_PATTERN = 500
MAX_ALTERNATIVES = 64

_BRACES = re.compile(r"\{([^{}]*)\}")


def matcher(glob: str) -> Callable[[Sequence[str]], bool]:
    """A test for a path's parts; an empty glob matches everything. Refuses a pattern that is too large."""
    if not glob:
        return lambda _parts: True
    if len(glob) > MAX_PATTERN:
        raise ToolRefused(f"the glob is longer than {MAX_PATTERN} characters")
    patterns = [_segments(p) for p in _alternatives(glob)]
    return lambda parts: any(_matches(pattern, tuple(parts)) for pattern in patterns)


def _alternatives(glob: str) -> list[str]:
    done: list[str] = []
    pending = [glob]
    while pending:
        pattern = pending.pop()
        found = _BRACES.search(pattern)
        if found is None:
            done.append(pattern)
        else:
            pending.extend(
                pattern[: found.start()] + choice + pattern[found.end() :] for choice in found[1].split(",")
            )
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            raise ToolRefused(f"the glob has more than {MAX_ALTERNATIVES} alternatives")
    return done


def _segments(pattern: str) -> tuple[str, ...]:
    segments = [s for s in pattern.split("/") if s not in ("", ".")]
    if len(segments) == 1 and not pattern.startswith("/") and segments[0] != "**":
        segments.insert(0, "**")
    return tuple(s for i, s in enumerate(segments) if s != "**" or segments[i - 1 : i] != ["**"])


@lru_cache(maxsize=1024)
def _name_pattern(segment: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(segment))  # backtracks little: translate uses atomic groups


def _matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether parts match, by the set of pattern positions reachable after each part."""
    reachable = _skip(pattern, {0})
    for part in parts:
        after: set[int] = set()
        for position in reachable:
            if position == len(pattern):
                continue
            if pattern[position] == "**":
                after.add(position)
            elif _name_pattern(pattern[position]).match(part):
                after.add(position + 1)
        reachable = _skip(pattern, after)
    return len(pattern) in reachable


def _skip(pattern: tuple[str, ...], positions: set[int]) -> set[int]:
    """`**` may stand for no folder at all. A trailing one wants at least one name, which it has by then."""
    return positions | {p + 1 for p in positions if p < len(pattern) and pattern[p] == "**"}
