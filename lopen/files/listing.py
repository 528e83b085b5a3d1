"""Which of a project's files a tool lists: readable ones that match a glob."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lopen.files.protection import ToolRefused, read_protection

MAX_LISTED = 2_000

ListTracked = Callable[[], Sequence[str]]
"""Return the paths git tracks or would add (`git ls-files -co --exclude-standard -z`), relative to the root."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Sorted files, relative to the root. `note` tells the model how to see the omitted files."""

    files: tuple[str, ...]
    truncated: bool
    note: str = ""


def readable_below(
    paths: Sequence[str], folder: tuple[str, ...], matches: Callable[[Sequence[str]], bool]
) -> Iterator[str]:
    """Yield those `paths` that are in `folder`, readable, and match relative to `folder`."""
    depth = len(folder)
    for path in sorted(paths):
        parts = tuple(path.split("/"))
        inside = parts[:depth] == folder and len(parts) > depth
        if inside and matches(parts[depth:]) and not read_protection(parts):
            yield path


MAX_GLOB = 500
MAX_ALTERNATIVES = 64

_BRACES = re.compile(r"\{([^{}]*)\}")


def glob_matcher(glob: str) -> Callable[[Sequence[str]], bool]:
    """Return a predicate for a path's parts. An empty glob matches everything.

    Raises:
        ToolRefused: the glob is too long or has too many alternatives.
    """
    if not glob:
        return lambda _parts: True
    if len(glob) > MAX_GLOB:
        raise ToolRefused(f"the glob is longer than {MAX_GLOB} characters")
    patterns = [_segments(p) for p in _alternatives(glob)]
    return lambda parts: any(_matches(pattern, tuple(parts)) for pattern in patterns)


def _alternatives(glob: str) -> list[str]:
    expanded: list[str] = []
    pending = [glob]
    while pending:
        pattern = pending.pop()
        braces = _BRACES.search(pattern)
        if braces is None:
            expanded.append(pattern)
        else:
            pending.extend(
                pattern[: braces.start()] + choice + pattern[braces.end() :]
                for choice in braces[1].split(",")
            )
        if len(expanded) + len(pending) > MAX_ALTERNATIVES:
            raise ToolRefused(f"the glob has more than {MAX_ALTERNATIVES} alternatives")
    return expanded


def _segments(pattern: str) -> tuple[str, ...]:
    segments = [s for s in pattern.split("/") if s not in ("", ".")]
    if len(segments) == 1 and not pattern.startswith("/") and segments[0] != "**":
        segments.insert(0, "**")
    return tuple(s for i, s in enumerate(segments) if s != "**" or segments[i - 1 : i] != ["**"])


@lru_cache(maxsize=1024)
def _name_pattern(segment: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(segment))  # translate uses atomic groups, which limit backtracking


def _matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Match the parts by the set of pattern positions that are reachable after each part."""
    reachable = _with_empty_globstar(pattern, {0})
    for part in parts:
        following: set[int] = set()
        for position in reachable:
            if position == len(pattern):
                continue
            if pattern[position] == "**":
                following.add(position)
            elif _name_pattern(pattern[position]).match(part):
                following.add(position + 1)
        reachable = _with_empty_globstar(pattern, following)
    return len(pattern) in reachable


def _with_empty_globstar(pattern: tuple[str, ...], positions: set[int]) -> set[int]:
    """Add the positions after each `**`, which may match zero folders."""
    return positions | {p + 1 for p in positions if p < len(pattern) and pattern[p] == "**"}
