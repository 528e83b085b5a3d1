"""Nested repositories and settings in the work tree: submodules, embedded clones, `.claude` in subfolders.

`git status` looks into a submodule and uses its configuration, so a program that a command configures there would
run later, outside the sandbox. The nested repositories come from git's index, not from a walk of the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.layout import Layout

# Entries of a git folder that determine which programs git starts
_CONFIGURING = ("config", "config.worktree", "commondir", "hooks", "info")
_GITLINK = "160000 "


@dataclass(frozen=True, slots=True)
class Nested:
    """Protected paths inside the work tree: absolute, except `settings` and `configured`."""

    starts: tuple[str, ...] = ()  # compared with everything below them, even if they do not exist yet
    folders: tuple[str, ...] = ()  # must stay folders
    present: tuple[str, ...] = ()  # `.git` files and folders that exist
    settings: tuple[str, ...] = ()  # nested `.claude/settings*` and `.lopen`, relative to the root
    configured: tuple[str, ...] = ()  # hooks and configuration in the work tree, relative to the root

    def with_configured(self, root: str, paths: Iterable[str]) -> Nested:
        """Protect `paths` too: hooks and configuration files inside the root."""
        paths = tuple(paths)
        inside = tuple(path.removeprefix(f"{root}/") for path in paths)
        parents = {place for path in inside if "/" in path for place in _above(root, os.path.dirname(path))}
        real = (path for path in paths if os.path.lexists(path) and os.path.realpath(path) == path)
        return replace(
            self,
            starts=(*self.starts, *paths),
            folders=tuple(sorted({*self.folders, *parents})),
            present=(*self.present, *real),
            configured=inside,
        )


NO_NESTED = Nested()


def find_nested(layout: Layout, git: GitCommand, embedded: Iterable[str]) -> Nested:
    """Find the submodules and settings in HEAD (`git` uses an index of it), and include `embedded` repositories."""
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
            starts += [f"{place}/{name}" for name in _CONFIGURING]
            continue
        starts.append(place)
        starts += [
            f"{folder}/{name}" for folder in _linked_git_folder(layout, place) for name in _CONFIGURING
        ]
    return Nested(tuple(starts), tuple(sorted(folders)), tuple(present), tuple(settings))


def is_protected_path(path: str) -> bool:
    """Return True if only the user may write this path: nested settings, or anything in a `.git`."""
    return _is_settings(path) or ".git" in path.split("/")


def _is_settings(path: str) -> bool:
    *above, name = path.split("/")
    if ".lopen" in above[1:]:
        return True
    return len(above) > 1 and above[-1] == ".claude" and name.startswith("settings")


def _above(root: str, path: str) -> Iterator[str]:
    """Yield the folder at `path` and its parents below the root, none of which may become a link."""
    place = root
    for part in path.split("/"):
        place = f"{place}/{part}"
        yield place


def _linked_git_folder(layout: Layout, place: str) -> Iterator[str]:
    """Yield the git folder that a `.git` file names, if it is inside the project or the repository's git folder."""
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
