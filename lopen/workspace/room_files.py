"""A folder that holds exactly the files it is given: after a command, what was added is removed and what was changed
is written again.

A file counts as unchanged while its inode, mode, size and change time are the same: no program can set the change time.
Files that were written within a tick of the clock before the command are compared by content.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lopen.base.stat_cache import settled

LINK, EXECUTABLE = "120000", "100755"  # modes as git writes them; every other one is a plain file
_FOLDER_MODE = 0o755
MOST_KEPT_BYTES = 64_000_000  # of one file whose content a caller asks for

FileState = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoomFile:
    """A file to hold: its git mode and blob id."""

    mode: str
    blob: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a command did to the files: paths that it changed or deleted, paths that it added (a folder counts once)."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict)  # of the files that the caller asked for


Contents = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Return blob id → content."""


class RoomFiles:
    """The files below `top`. `kept` are paths that belong to somebody else and are left alone."""

    def __init__(self, top: Path, contents: Contents, object_format: str) -> None:
        self.top = top
        self._format = object_format
        self.kept: set[str] = set()
        self.files: dict[str, RoomFile] = {}
        self._contents = contents
        self._states: dict[str, FileState] = {}
        self._unsure: set[str] = set()  # written too lately for their state to tell
        self._folders: Counter[str] = Counter()  # path → number of files and kept paths below
        top.mkdir(mode=0o700, parents=True, exist_ok=True)

    def change(self, wanted: Mapping[str, RoomFile | None]) -> None:
        """Write the `wanted` files; delete those that are None."""
        for path in wanted:
            if path in self.files:
                self._forget(path)
        given = {path: file for path, file in wanted.items() if file is not None}
        self._write(given)
        self.files |= given
        for path in given:
            self._folders.update(_above(path))

    def keep(self, path: str) -> None:
        """Leave `path`, and what is below it, alone from now on."""
        self.kept.add(path)
        self._folders.update(_above(path))

    def drop(self, paths: Iterable[str]) -> None:
        """Remove kept paths."""
        for path in paths:
            self.kept.discard(path)
            self._remove(path)

    def seal(self) -> None:
        """Take the state of the files that were written lately; to be called right before a command."""
        now = time.time_ns()
        for path in [*self._unsure, *(self.files.keys() - self._states.keys())]:
            found = os.lstat(f"{self.top}/{path}")
            self._states[path] = _state(found)
            if settled(found.st_ctime_ns, now):
                self._unsure.discard(path)
            else:
                self._unsure.add(path)

    def tidy(self, *, wanted: Callable[[str], bool] = lambda _: False, remove_added: bool = True) -> Found:
        """Undo what a command did; return it, with the contents of the changed and added files that are `wanted`."""
        changed, added = self._differences()
        read = [path for path in (*changed, *added) if wanted(path)]
        contents = {path: raw for path in read if (raw := _content(f"{self.top}/{path}")) is not None}
        for path in added if remove_added else ():
            remove(f"{self.top}/{path}")
        for path in changed:
            remove(f"{self.top}/{path}")
            self._states.pop(path, None)
        self._write({path: self.files[path] for path in changed})
        return Found(tuple(changed), tuple(added), contents)

    def _differences(self) -> tuple[list[str], list[str]]:
        """Return the paths that were changed or are missing, and those that were added."""
        changed: list[str] = []
        added: list[str] = []
        seen: set[str] = set()
        files, folders, states, kept = self.files, self._folders, self._states, self.kept
        waiting = [""]
        while waiting:
            base = waiting.pop()
            for entry in _entries(f"{self.top}/{base}"):
                path = base + entry.name
                if path in files:
                    seen.add(path)
                    if _state(entry.stat(follow_symlinks=False)) != states.get(path):
                        changed.append(path)
                elif path in kept:
                    continue
                elif path in folders and entry.is_dir(follow_symlinks=False):
                    _make_plain(entry.path)
                    waiting.append(f"{path}/")
                else:
                    added.append(path)
        if len(seen) != len(files):
            changed += files.keys() - seen
        if self._unsure:
            changed += [path for path in self._unsure - {*changed} if not self._same(path)]
        return sorted(changed), sorted(added)

    def _same(self, path: str) -> bool:
        """Return True if the file's content is still what was written."""
        content = _content(f"{self.top}/{path}")
        if content is None:
            return False
        digest = hashlib.new(self._format, b"blob %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        return digest.hexdigest() == self.files[path].blob

    def _forget(self, path: str) -> None:
        del self.files[path]
        self._states.pop(path, None)
        self._unsure.discard(path)
        self._remove(path)

    def _remove(self, path: str) -> None:
        """Delete what is at `path`, and the folders that become empty."""
        remove(f"{self.top}/{path}")
        for folder in _above(path):
            self._folders[folder] -= 1
            if not self._folders[folder]:
                del self._folders[folder]
                remove(f"{self.top}/{folder}")

    def _write(self, wanted: Mapping[str, RoomFile]) -> None:
        contents = self._contents(dict.fromkeys(file.blob for file in wanted.values())) if wanted else {}
        folders: set[str] = set()
        for path, file in wanted.items():
            place = f"{self.top}/{path}"
            folder = os.path.dirname(place)
            if folder not in folders:
                _make_folders(str(self.top), path)
                folders.add(folder)
            _write_file(place, file.mode, contents[file.blob])
            self._states.pop(path, None)


def _above(path: str) -> list[str]:
    """Return the folders above `path`, the nearest first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]


def remove(place: str) -> None:
    """Delete a file, a link or a whole folder, whatever permissions a command gave it."""
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            os.unlink(place)
            return
    except FileNotFoundError:
        return
    try:
        shutil.rmtree(place)
    except OSError:  # folders without permissions
        for folder, _, _ in os.walk(place):
            os.chmod(folder, 0o700)
        shutil.rmtree(place)


def state_at(place: str) -> FileState:
    """Return numbers that change with the file or link at `place`; () where there is none."""
    try:
        return _state(os.lstat(place))
    except OSError:
        return ()


def _state(found: os.stat_result) -> FileState:
    return found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        os.chmod(folder, _FOLDER_MODE)
        with os.scandir(folder) as entries:
            return list(entries)


def _make_plain(folder: str) -> None:
    """Give a folder its usual permissions and no extended attributes, in which a command could leave something."""
    mode = stat.S_IMODE(os.lstat(folder).st_mode)
    if mode != _FOLDER_MODE:
        os.chmod(folder, _FOLDER_MODE)
    if hasattr(os, "listxattr"):
        for name in os.listxattr(folder, follow_symlinks=False):
            if name.startswith("user."):
                os.removexattr(folder, name, follow_symlinks=False)


def _make_folders(top: str, path: str) -> None:
    """Create the folders above `path`; something else in their place is deleted."""
    place = top
    for part in path.split("/")[:-1]:
        place = f"{place}/{part}"
        try:
            os.mkdir(place)
            os.chmod(place, _FOLDER_MODE)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                os.unlink(place)
                os.mkdir(place)


def _write_file(place: str, mode: str, content: bytes) -> None:
    if mode == LINK:
        os.symlink(os.fsdecode(content), place)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(place, flags, 0o755 if mode == EXECUTABLE else 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _content(place: str) -> bytes | None:
    """Return the content of a file or the target of a link; None for anything else, and where it is very large."""
    try:
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(os.readlink(place))
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_KEPT_BYTES:
            return None
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except OSError:
        return None
