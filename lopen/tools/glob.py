"""Glob patterns over project paths. Pure, and quick whatever the pattern.

`*`, `?` and `[…]` stay within a name, `**` spans folders, `{a,b}` is either. A pattern without a slash is
matched against the name alone, as in .gitignore.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from lopen.tools.refusal import ToolRefused

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
