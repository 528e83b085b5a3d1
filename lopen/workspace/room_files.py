"""A folder that holds exactly the files it is given: after a command, what was added is removed and what was changed
is written again.

A file counts as unchanged while its inode, mode, size and change time are the same: no program can set the change time.
Files that were written within a tick of the clock before the command are compared by content.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lopen.base.stat_cache import settled
from lopen.workspace.plain_files import (
    FileState,
    content_at,
    entries_in,
    make_folders,
    make_plain_folder,
    remove,
    state_at,
    state_of,
    write_file,
)

TICKS_NS = 2_100_000_000  # more than a tick of the clock in which any file system keeps times
CLOCK_STEP_S = 0.5


@dataclass(frozen=True, slots=True)
class RoomFile:
    """A file to hold: its git mode and blob id."""

    mode: str
    blob: str


@dataclass(frozen=True, slots=True)
class Found:
    """The effect of a command on the files: paths that it changed or deleted, paths that it added (a folder counts once)."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict)  # of the files that the caller asked for


@dataclass(frozen=True, slots=True)
class _Seal:
    """When a command began: the time, and how far the clock is from the one that nobody sets (seconds)."""

    at_ns: int
    offset: float


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
        self._written: set[str] = set()  # since the last `seal`
        self._unsure: set[str] = set()  # written too lately for their state to tell
        self._names: dict[str, set[str]] = {"": set()}  # folder → what it holds
        self._inodes: dict[str, int] = {}  # of the folders
        self._sealed = _Seal(0, 0.0)
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
            self._add(path)

    def keep(self, path: str) -> None:
        """Leave `path`, and what is below it, alone from now on."""
        self.kept.add(path)
        self._add(path)

    def drop(self, paths: Iterable[str]) -> None:
        """Remove kept paths, but no file that is to be there."""
        for path in paths:
            self.kept.discard(path)
            if path not in self.files and path not in self._names:
                self._remove(path)

    def clear(self) -> None:
        """Remove everything but the kept paths."""
        self.files, self._states, self._unsure, self._written = {}, {}, set(), set()
        self._names, self._inodes = {"": set()}, {}
        for path in self.kept:
            self._add(path)
        self.tidy()

    def seal(self) -> None:
        """Take the state of the files that were written lately; to be called right before a command."""
        now = time.time_ns()
        for path in self._unsure | self._written:
            found = os.lstat(f"{self.top}/{path}")
            self._states[path] = state_of(found)
            if settled(found.st_ctime_ns, now):
                self._unsure.discard(path)
            else:
                self._unsure.add(path)
        self._written.clear()
        for folder in self._names.keys() - self._inodes.keys():
            self._inodes[folder] = os.lstat(f"{self.top}/{folder}").st_ino
        self._sealed = _Seal(now, time.time() - time.monotonic())

    def tidy(self, *, wanted: Callable[[str], bool] = lambda _: False, remove_added: bool = True) -> Found:
        """Undo what a command did; return it, with the contents of the changed and added files that are `wanted`."""
        changed, added = self._differences()
        read = [path for path in (*changed, *added) if wanted(path)]
        contents = {path: raw for path in read if (raw := content_at(f"{self.top}/{path}")) is not None}
        for path in added if remove_added else ():
            remove(f"{self.top}/{path}")
        for path in changed:
            remove(f"{self.top}/{path}")
            self._states.pop(path, None)
        self._write({path: self.files[path] for path in changed})
        return Found(tuple(changed), tuple(added), contents)

    def _differences(self) -> tuple[list[str], list[str]]:
        """Return the paths that were changed or are missing, and those that were added."""
        changed: set[str] = set()
        added: set[str] = set()
        touched = self._touched()
        if touched is None:
            self._list("", changed, added, deep=True)
        else:
            for path in touched:
                if path in self._names:
                    self._list(path, changed, added, deep=False)
                elif path in self.files and state_at(f"{self.top}/{path}") != self._states.get(path):
                    changed.add(path)
        changed |= {path for path in self._unsure - changed if not self._same(path)}
        return sorted(changed), sorted(added)

    def _list(self, folder: str, changed: set[str], added: set[str], *, deep: bool) -> None:
        """Compare what a folder holds with what it is to hold; with `deep` everything below it too."""
        base = f"{folder}/" if folder else ""
        place = f"{self.top}/{folder}"
        try:
            found = os.lstat(place)
        except OSError:
            return  # its parent tells that it is missing
        if not stat.S_ISDIR(found.st_mode):
            return
        if found.st_ino != self._inodes.get(folder):  # another folder was moved here
            deep = True
            self._inodes.pop(folder, None)
        make_plain_folder(place, found)
        missing = set(self._names[folder])
        for entry in entries_in(place):
            path = base + entry.name
            if path in self.files:
                missing.discard(entry.name)
                if state_of(entry.stat(follow_symlinks=False)) != self._states.get(path):
                    changed.add(path)
            elif path in self.kept:
                missing.discard(entry.name)
            elif path in self._names and entry.is_dir(follow_symlinks=False):
                missing.discard(entry.name)
                if deep:
                    self._list(path, changed, added, deep=True)
            else:
                added.add(path)
        for name in missing:
            changed.update(self._below(base + name))

    def _below(self, path: str) -> Iterator[str]:
        """Yield the files at and below `path`."""
        if path in self.files:
            yield path
        for name in self._names.get(path, ()):
            yield from self._below(f"{path}/{name}")

    def _touched(self) -> list[str] | None:
        """Return the folders, parents first, and the files whose change time is not older than the command.

        None where a command locked a folder, and where the clock was set, which makes change times useless.
        """
        if abs(time.time() - time.monotonic() - self._sealed.offset) > CLOCK_STEP_S:
            return None
        since, look = max(0, self._sealed.at_ns - TICKS_NS), os.stat
        touched = []
        top = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for path in (*sorted(self._names), *self.files):
                try:
                    if look(path or ".", dir_fd=top, follow_symlinks=False).st_ctime_ns >= since:
                        touched.append(path)
                except PermissionError:
                    return None
                except OSError:
                    touched.append(path)
        finally:
            os.close(top)
        return touched

    def _same(self, path: str) -> bool:
        """Return True if the file's content is still what was written."""
        content = content_at(f"{self.top}/{path}")
        if content is None:
            return False
        digest = hashlib.new(self._format, b"blob %d\0" % len(content), usedforsecurity=False)
        digest.update(content)
        return digest.hexdigest() == self.files[path].blob

    def _forget(self, path: str) -> None:
        del self.files[path]
        self._states.pop(path, None)
        self._unsure.discard(path)
        self._written.discard(path)
        self._remove(path)

    def _forget_inodes(self, path: str) -> None:
        while path:
            path = path.rpartition("/")[0]
            self._inodes.pop(path, None)

    def _add(self, path: str) -> None:
        """Note that the folders above hold `path`."""
        while path:
            folder, _, name = path.rpartition("/")
            names = self._names.setdefault(folder, set())
            if name in names:
                return
            names.add(name)
            path = folder

    def _remove(self, path: str) -> None:
        """Delete what is at `path`, and the folders that become empty."""
        remove(f"{self.top}/{path}")
        folder, _, name = path.rpartition("/")
        names = self._names[folder]
        names.discard(name)
        if folder and not names:
            del self._names[folder]
            self._inodes.pop(folder, None)
            self._remove(folder)

    def _write(self, wanted: Mapping[str, RoomFile]) -> None:
        contents = self._contents(dict.fromkeys(file.blob for file in wanted.values())) if wanted else {}
        folders: set[str] = set()
        for path, file in wanted.items():
            place = f"{self.top}/{path}"
            folder = os.path.dirname(place)
            if folder not in folders:
                self._forget_inodes(path)
                make_folders(str(self.top), path)
                folders.add(folder)
            write_file(place, file.mode, contents[file.blob])
            self._states.pop(path, None)
            self._written.add(path)
