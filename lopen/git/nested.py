"""Repositories and settings inside the work tree that are not its own: submodules, embedded clones, nested `.claude`.

git looks into a submodule by itself (`git status` does), under the configuration that lies there, so what a command
plants there would run later, outside of any sandbox. Found through what git knows, never by walking the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.layout import Layout

# What of a git folder decides which programs git starts. Its HEAD, references and objects are the repository's work.
_DECIDING = ("config", "config.worktree", "commondir", "hooks", "info")
_GITLINK = "160000 "


@dataclass(frozen=True, slots=True)
class Nested:
    """What is guarded inside the work tree, by absolute path but for `settings`."""

    starts: tuple[str, ...] = ()  # compared with everything below, also where nothing is there yet
    folders: tuple[str, ...] = ()  # of these only that they stay folders
    present: tuple[str, ...] = ()  # `.git` files and folders that exist
    settings: tuple[str, ...] = ()  # nested `.claude/settings*` and `.lopen`, relative to the root


NO_NESTED = Nested()


def find_nested(layout: Layout, git: GitCommand, embedded: Iterable[str]) -> Nested:
    """What HEAD knows (`git` works on an index of it) and the `embedded` repositories that were seen already."""
    links: list[str] = []
    settings: list[str] = []
    for entry in git.run("ls-files", "-z", "--stage").fields():
        about, _, path = entry.partition("\t")
        if about.startswith(_GITLINK):
            links.append(path)
        elif _is_settings(path):
            settings.append(path)
    starts: list[str] = []
    folders: set[str] = set()
    present: list[str] = []
    for path in dict.fromkeys((*links, *embedded)):
        place = f"{layout.root}/{path}/.git"
        folders |= set(_above(str(layout.root), path))
        mode = _mode(place)
        present += [place] if mode else []
        if stat.S_ISDIR(mode):
            folders.add(place)
            starts += [f"{place}/{name}" for name in _DECIDING]
            continue
        starts.append(place)
        starts += [f"{folder}/{name}" for folder in _behind(layout, place) for name in _DECIDING]
    return Nested(tuple(starts), tuple(sorted(folders)), tuple(present), tuple(settings))


def planted(path: str) -> bool:
    """Whether a path of the work tree is one that nobody but its person writes, in a folder further down."""
    return _is_settings(path) or ".git" in path.split("/")


def _is_settings(path: str) -> bool:
    *above, name = path.split("/")
    if ".lopen" in above[1:]:
        return True
    return len(above) > 1 and above[-1] == ".claude" and name.startswith("settings")


def _above(root: str, path: str) -> Iterator[str]:
    """The folder at `path` and those above it, below the root: a link in place of one would lead elsewhere."""
    place = root
    for part in path.split("/"):
        place = f"{place}/{part}"
        yield place


def _behind(layout: Layout, place: str) -> Iterator[str]:
    """The git folder that a `.git` file names, where it is the repository's own or lies in the project."""
    try:
        named = (
            Path(place).read_text("utf-8").removeprefix("gitdir:").strip() if os.path.isfile(place) else ""
        )
    except (OSError, UnicodeDecodeError):
        return
    folder = os.path.realpath(os.path.join(os.path.dirname(place), named)) if named else ""
    if any(folder.startswith(f"{os.path.realpath(top)}/") for top in (layout.root, layout.common_dir)):
        yield folder


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
