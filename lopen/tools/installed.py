"""What verify-setup installed in the clean room and its HOME, kept for later commands, which cannot change it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from lopen.workspace.plain_files import FileState, remove, state_at
from lopen.workspace.room_files import RoomFiles

# What builds and tests write anew: it does not belong to what verify-setup installed.
MADE_ANEW = frozenset(
    {
        "__pycache__",
        ".coverage",
        ".gradle",
        ".mypy_cache",
        ".npm",
        ".pytest_cache",
        ".ruff_cache",
        "build",
        "dist",
        "target",
        "tmp",
    }
    | {f".cache/{name}" for name in ("go-build", "pip", "pypoetry", "uv", "yarn")}
)
# Folders of HOME that several programs share
_SHARED = frozenset({".cache", ".config", ".local", ".local/share"})
# Caches that tools keep in what was installed
CACHES_INSIDE = {"node_modules": (".cache", ".vite", ".vite-temp")}
_CACHE_NAMES = frozenset({"__pycache__", ".cache", ".vite", ".vite-temp"})

_States = Mapping[str, FileState]


class Installed:
    """What verify-setup installed in the room and its HOME; no other command changes it."""

    def __init__(self, files: RoomFiles, user: RoomFiles) -> None:
        self.key = ""
        self.tree = ""  # on which it was installed
        self._files = files
        self._user = user
        self._taken: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._states: _States = {}

    def paths(self) -> tuple[Path, ...]:
        """Return the installed files and folders, all absolute."""
        pairs = zip((self._files.top, self._user.top), self._taken, strict=True)
        return tuple(top / path for top, paths in pairs for path in paths)

    def take(self, files: Iterable[str], user: Iterable[str]) -> None:
        """Keep the paths that verify-setup added, but for what is made anew."""
        self._taken = tuple(self._kept(self._files, files)), tuple(self._kept(self._user, user, _SHARED))
        for path in self.paths():
            for name in CACHES_INSIDE.get(path.name, ()):
                (path / name).mkdir(exist_ok=True)
        self._states = _states(self.paths())

    @staticmethod
    def _kept(room: RoomFiles, paths: Iterable[str], shared: frozenset[str] = frozenset()) -> Iterator[str]:
        for path in paths:
            place = room.top / path
            if path in MADE_ANEW or PurePosixPath(path).name in MADE_ANEW or place.is_symlink():
                remove(str(place))
            elif path in shared and place.is_dir():
                inner = [f"{path}/{name}" for name in sorted(os.listdir(place))]
                yield from Installed._kept(room, inner, shared)
            else:
                room.keep(path)
                yield path

    def check(self) -> None:
        """Remove what is installed if a command changed it; delete the caches that it left inside."""
        for path in self.paths():
            for folder, folders, _ in os.walk(path):
                for name in [name for name in folders if name in _CACHE_NAMES]:
                    place = f"{folder}/{name}"
                    if not any(known.startswith(f"{place}/") for known in self._states):
                        remove(place)
                        folders.remove(name)
        if _states(self.paths()) != self._states:
            self.drop()

    def drop(self) -> None:
        """Remove what is installed."""
        self._files.drop(self._taken[0])
        self._user.drop(self._taken[1])
        self._taken, self._states, self.key, self.tree = ((), ()), {}, "", ""


def _states(paths: Iterable[Path]) -> _States:
    """Return the state of every file and link at or below `paths`."""
    found: dict[str, FileState] = {}
    for path in paths:
        if not path.is_dir():
            places = [str(path)]
        else:
            places = [
                f"{folder}/{name}"
                for folder, folders, names in os.walk(path)
                for name in (*names, *(f for f in folders if os.path.islink(f"{folder}/{f}")))
            ]
        found |= {place: state_at(place) for place in places}
    return found
