"""What verify-setup installed in the clean room and its HOME, kept for later commands and sessions.

No other command changes it: bubblewrap shows it read-only, elsewhere a change is found and it is made anew. It stays
where it was installed, because programs in it name their own place. A sealed record beside it says what it was made for
and in which state every file is. docs/reference/completion.md
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from lopen.core.files import replace_file
from lopen.core.person import holds, sealed
from lopen.files.plain_files import FileState, entries_in, remove, state_at
from lopen.files.room_files import RoomFiles, RoomFolder
from lopen.sandbox.command import CACHES_INSIDE, make_caches
from lopen.sandbox.environment import search_path
from lopen.store.temporary import last_use, remove_unheld

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
_CACHE_NAMES = frozenset({"__pycache__"}.union(*CACHES_INSIDE.values()))

RECORD = "installed.json"
KEPT_DAYS = 30.0  # since it was installed, and since its room was used
MOST_BYTES = 10_000_000_000  # of all rooms that no process holds
# Programs whose version decides what was installed
_INTERPRETERS = ("python3", "python", "node", "ruby", "go", "cargo", "java", "php", "dotnet")

_States = Mapping[str, FileState]
Ignored = Callable[[Iterable[str]], Iterable[str]]  # returns those of the given paths that git ignores


@dataclass(frozen=True, slots=True)
class RoomPlace:
    """The room's own folder, the person's checkout and the work tree it serves, and where its commands see its files."""

    folder: Path
    home: Path
    root: Path
    seen_at: Path

    def fingerprint(self) -> str:
        """Return what has to be the same for programs installed here to work: the paths, the interpreters on PATH."""
        found = (shutil.which(name) for name in _INTERPRETERS)
        programs = [
            (path, os.path.realpath(path), state_at(os.path.realpath(path))) for path in found if path
        ]
        return json.dumps([str(self.folder), str(self.seen_at), os.environ.get("PATH", ""), programs])


class Installed:
    """What verify-setup installed in a room."""

    def __init__(self, files: RoomFiles, user: RoomFolder, place: RoomPlace) -> None:
        self.key = ""  # what it was made for, "" where nothing is installed
        self.tree = ""  # on which it was installed
        self._files = files
        self._user = user
        self._place = place
        self._taken: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._states: _States = {}
        self._adopt()

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
        """Return the variables by which commands in `project` use what is installed, where no mount shows it there.

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

    def take(self, files: Iterable[str], user: Iterable[str], ignored: Ignored) -> None:
        """Keep the paths that verify-setup added, but for what is made anew."""
        files = _told_apart(self._files.top, files, ignored)
        self._taken = tuple(self._kept(self._files, files)), tuple(self._kept(self._user, user, _SHARED))
        for path in self.paths():
            make_caches(path)
        self._states = _states(self.paths())

    def made_for(self, key: str, tree: str) -> None:
        """What was taken last serves every tree with this key; it was installed on `tree`. Later sessions find it."""
        self.key, self.tree = key, tree
        body = {
            "key": key,
            "tree": tree,
            "files": self.in_files,
            "home": self.in_home,
            "states": _digest(self._states),
            "bytes": sum(state[2] for state in self._states.values() if state),
            "made": time.time(),
            "place": self._place.fingerprint(),
            "project": str(self._place.home),
            "root": str(self._place.root),
        }
        with suppress(OSError):  # it serves this session then
            text = json.dumps(body)
            replace_file(
                self._place.folder / RECORD, json.dumps([text, sealed("installed", text)]).encode("ascii")
            )

    def make_way(self, paths: Iterable[str]) -> None:
        """Remove what is installed if a tree has one of `paths` at, above or below it."""
        above = {str(folder) for path in self.in_files for folder in (path, *PurePosixPath(path).parents)}
        below = tuple(f"{path}/" for path in self.in_files)
        if below and any(path in above or path.startswith(below) for path in paths):
            self.drop()

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
        remove(str(self._place.folder / RECORD))
        self._files.drop(self._taken[0])
        self._user.drop(self._taken[1])
        self._taken, self._states, self.key, self.tree = ((), ()), {}, "", ""

    def _adopt(self) -> None:
        """Take over what an earlier session installed here if it is whole; remove everything else in the room."""
        body = read_record(self._place.folder)
        young = time.time() - KEPT_DAYS * 86_400 < body.get("made", 0) <= time.time()
        if young and body["place"] == self._place.fingerprint():
            self._taken = tuple(body["files"]), tuple(body["home"])
            self._states = _states(self.paths())
            if _digest(self._states) == body["states"]:
                self.key, self.tree = body["key"], body["tree"]
            else:
                self._taken, self._states = ((), ()), {}
        for room, paths in zip((self._files, self._user), self._taken, strict=True):
            for path in paths:
                room.keep(path)
            room.clear()
        if not self.key:
            remove(str(self._place.folder / RECORD))

    @staticmethod
    def _kept(room: RoomFolder, paths: Iterable[str], shared: frozenset[str] = frozenset()) -> Iterator[str]:
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


def _told_apart(top: Path, paths: Iterable[str], ignored: Ignored) -> Iterator[str]:
    """Yield `paths`; of a folder that git does not ignore but in which it ignores folders, what is in it.

    So the folder of a package, which a task may write later, is not taken for something that was installed.
    """
    paths = list(paths)
    apart: set[str] = set()
    level = [path for path in paths if (top / path).is_dir() and not (top / path).is_symlink()]
    while level := [path for path in level if PurePosixPath(path).name not in MADE_ANEW]:
        venvs = {path for path in level if (top / path / "pyvenv.cfg").is_file()}
        ends = venvs | {path for path in level if f"/{path}".endswith("/node_modules")} | {*ignored(level)}
        apart |= {str(above) for path in ends for above in PurePosixPath(path).parents}
        found = ((path, e) for path in level if path not in ends for e in entries_in(f"{top}/{path}"))
        level = [f"{path}/{e.name}" for path, e in found if e.is_dir(follow_symlinks=False)]
    while paths:
        path = paths.pop(0)
        if path in apart:
            paths[:0] = [f"{path}/{name}" for name in sorted(os.listdir(top / path))]
        else:
            yield path


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of a room if this person's lopen wrote it; {} where there is none."""
    try:
        text, seal = json.loads((folder / RECORD).read_bytes())
        body = json.loads(text) if holds(seal, "installed", text) else {}
    except (OSError, ValueError, TypeError, AttributeError):  # not written by lopen
        return {}
    return body if isinstance(body, dict) else {}


def remove_unused(rooms: Path, *, project: Path | None = None) -> int:
    """Delete rooms that no process holds: those without anything installed, which a killed process left, those whose work
    tree is gone, those unused for long, the oldest beyond the size, those of `project`.

    Return the bytes of what was installed in them. `rooms` has a folder for each project.
    """
    folders = (*rooms.glob("*/room-*"), *rooms.glob("*/beside/room-*"))
    found = {folder: read_record(folder) for folder in folders}
    left, freed = sum(int(body.get("bytes", 0)) for body in found.values()), 0
    for folder in sorted(found, key=last_use):
        size = int(found[folder].get("bytes", 0))
        old = time.time() - last_use(folder) > KEPT_DAYS * 86_400
        useless = not found[folder] or not os.path.isdir(found[folder].get("root", ""))
        asked = project is not None and found[folder].get("project") == str(project)
        if (old or useless or asked or left > MOST_BYTES) and remove_unheld(folder):
            left, freed = left - size, freed + size
            with suppress(OSError):
                folder.parent.rmdir()
    return freed


def _digest(states: _States) -> str:
    lines = (f"{place}\0{state}\n" for place, state in sorted(states.items()))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


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
