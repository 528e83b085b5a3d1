"""What differs between an index and the work tree, as one `git status` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lopen.git.command import Command
from lopen.git.ignores import in_build_folder, is_build_folder, is_internal


@dataclass(frozen=True, slots=True)
class Survey:
    """Paths that differ from HEAD, whether staged or not, sorted.

    Left out: what git ignores, lopen's own state, well-known caches that are not tracked. A folder inside the
    work tree that is a repository of its own is in `embedded` alone: its files belong to that repository.
    """

    changed: tuple[str, ...]
    embedded: tuple[str, ...]  # folders, without a slash at the end


def survey(git: Command, root: Path) -> Survey:
    """One look at the work tree, through the content door, against its index and HEAD."""
    answer = git.run(
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignored=no",
        "--ignore-submodules=dirty",  # looking inside would run git under the submodule's own configuration
        "--no-renames",
        "--no-ahead-behind",
    )
    is_cache = cache(lambda folder: is_build_folder(root / folder))
    changed: set[str] = set()
    embedded: set[str] = set()
    for path, tracked in _entries(answer.fields()):
        if is_internal(path) or (not tracked and in_build_folder(path, is_cache)):
            continue
        if path.endswith("/"):
            embedded.add(path.rstrip("/"))
        else:
            changed.add(path)
    return Survey(tuple(sorted(changed)), tuple(sorted(embedded)))


# How many blanks stand before the path in a line of `status --porcelain=v2`, by the line's first letter.
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10}


def _entries(fields: list[str]) -> Iterator[tuple[str, bool]]:
    """(path, tracked) of every line; a folder's path ends in `/`."""
    for field in fields:
        if field.startswith("? "):
            yield field[2:], False
        elif before := _FIELDS_BEFORE_PATH.get(field[:1]):
            yield field.split(" ", before)[before], True
