"""What differs between a commit and the files of the work tree, as `git status` says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.ignores import in_build_folder, is_build_folder, is_internal


@dataclass(frozen=True, slots=True)
class WorkTreeStatus:
    """Paths that differ from HEAD, staged or not, sorted.

    Ignored files, lopen's own state and untracked well-known caches are left out. A folder that is a repository
    of its own is only in `embedded`, because its files belong to that repository.
    """

    changed: tuple[str, ...]
    embedded: tuple[str, ...]  # folders, without a slash at the end


def read_status(git: GitCommand, root: Path) -> WorkTreeStatus:
    """Compare the work tree with `git`'s index and HEAD."""
    answer = git.run(
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignored=no",
        "--ignore-submodules=dirty",  # otherwise git runs with the submodule's own configuration
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
    return WorkTreeStatus(tuple(sorted(changed)), tuple(sorted(embedded)))


# Number of spaces before the path in a line of `status --porcelain=v2`, by the line's first letter
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10}


def _entries(fields: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield (path, tracked) of every line; a folder's path ends in `/`."""
    for field in fields:
        if field.startswith("? "):
            yield field[2:], False
        elif before := _FIELDS_BEFORE_PATH.get(field[:1]):
            yield field.split(" ", before)[before], True


def in_repositories(root: Path, paths: Iterable[str]) -> bool:
    """Return True if a folder above one of the paths, below the root, holds a `.git`."""
    folders: set[str] = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in folders:
            folders.add(path)
    return any(os.path.lexists(f"{root}/{folder}/.git") for folder in folders)
