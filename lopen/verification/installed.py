"""verify-setup's installations in the clean room and its HOME, kept for the later commands of the session.

Under bubblewrap no other command changes it (docs/reference/completion.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from lopen.files.room_files import RoomFiles, RoomFolder, remove
from lopen.sandbox.command import CACHES_INSIDE, make_caches
from lopen.sandbox.environment import search_path
from lopen.verification.test_files import words

# Files that builds and tests write anew: they are no part of the installations.
MADE_ANEW = words(
    "__pycache__ .coverage .gradle .mypy_cache .npm .pytest_cache .ruff_cache build dist target tmp"
) | {f".cache/{name}" for name in ("go-build", "pip", "pypoetry", "uv", "yarn")}
# Folders of HOME that several programs share
_SHARED = frozenset({".cache", ".config", ".local", ".local/share"})


class Installed:
    """verify-setup's installations in a room."""

    def __init__(self, files: RoomFiles, user: RoomFolder) -> None:
        self.key = ""  # the key of the installations, "" where there are none
        self.tree = ""  # on which it was installed
        self._files = files
        self._user = user
        self._taken: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def in_files(self) -> tuple[str, ...]:
        """The installed files and folders, relative to the room's files."""
        return self._taken[0]

    @property
    def in_home(self) -> tuple[str, ...]:
        """The installed files and folders, relative to the room's HOME."""
        return self._taken[1]

    def paths(self) -> tuple[Path, ...]:
        """Return the installed files and folders, all absolute."""
        pairs = zip((self._files.top, self._user.top), self._taken, strict=True)
        return tuple(top / path for top, paths in pairs for path in paths)

    def variables(self, project: Path) -> dict[str, str]:
        """Return the variables by which commands in `project` use the installations, where no mount shows them there.

        A package that was installed in place is the project's own.
        """
        folders, user = self.paths(), self._user.top
        venvs = [path for path in folders if (path / "pyvenv.cfg").is_file()]
        modules = [path for path in folders if path.name == "node_modules"]
        bins = [*(v / "bin" for v in venvs), *(m / ".bin" for m in modules), user / ".local/bin"]
        wanted = {
            "VIRTUAL_ENV": venvs[:1],
            "NODE_PATH": modules,
            "PYTHONPATH": sorted({*self._in_place(folders, project)}),
            "PYTHONUSERBASE": [p for p in (user / ".local",) if p.is_dir()],
            "CARGO_HOME": [p for p in (user / ".cargo",) if p.is_dir()],
            "GOMODCACHE": [p for p in (user / "go/pkg/mod",) if p.is_dir()],
            "PATH": [b for b in bins if b.is_dir()],
        }
        found = {name: ":".join(map(str, paths)) for name, paths in wanted.items() if paths}
        if "PATH" in found:
            found["PATH"] += f":{search_path(os.environ.get('PATH', ''))}"
        return found

    def _in_place(self, folders: Iterable[Path], project: Path) -> Iterator[Path]:
        """Yield the project's folders from which Python packages were installed in place (`pip install -e`)."""
        here = re.compile(rf"{re.escape(str(self._files.top))}(/[^'\"\n]*)?")
        for folder in folders:
            for pattern in ("lib/python*/site-packages/", "python*/site-packages/"):
                for file in (*folder.glob(f"{pattern}*.pth"), *folder.glob(f"{pattern}__editable__*.py")):
                    for found in here.finditer(file.read_text("utf-8", "replace")):
                        path = project / (found[1] or "").lstrip("/")
                        yield path.parent if file.suffix == ".py" else path

    def take(self, files: Iterable[str], user: Iterable[str]) -> None:
        """Keep the paths that verify-setup added, except ones that are made anew."""
        self._taken = tuple(_kept(self._files, files)), tuple(_kept(self._user, user, _SHARED))
        for path in self.paths():
            make_caches(path)

    def made_for(self, key: str, tree: str) -> None:
        """The last installation serves every tree with this key; it was installed on `tree`."""
        self.key, self.tree = key, tree

    def make_way(self, paths: Iterable[str]) -> None:
        """Remove the installations if a tree has one of `paths` at, above or below them."""
        above = {str(folder) for path in self.in_files for folder in (path, *PurePosixPath(path).parents)}
        below = tuple(f"{path}/" for path in self.in_files)
        if below and any(path in above or path.startswith(below) for path in paths):
            self.drop()

    def empty_caches(self) -> None:
        """Delete what a command left in the tools' caches inside."""
        for path in self.paths():
            for name in CACHES_INSIDE.get(path.name, ()):
                remove(str(path / name))
            make_caches(path)

    def drop(self) -> None:
        """Remove the installations."""
        self._files.drop(self._taken[0])
        self._user.drop(self._taken[1])
        self._taken, self.key, self.tree = ((), ()), "", ""


def _kept(room: RoomFolder, paths: Iterable[str], shared: frozenset[str] = frozenset()) -> Iterator[str]:
    for path in paths:
        place = room.top / path
        if path in MADE_ANEW or PurePosixPath(path).name in MADE_ANEW or place.is_symlink():
            remove(str(place))
        elif path in shared and place.is_dir():
            yield from _kept(room, [f"{path}/{name}" for name in sorted(os.listdir(place))], shared)
        else:
            room.keep(path)
            yield path
