"""A folder that holds exactly the files it is given: after a command, what was added is removed and what was changed
is written again. A folder that the command touched is made anew, because its times and its size tell of what was in it.

A file or folder counts as unchanged while its inode, mode, size and change time are the same: no program can set the
change time. Where the file system's clock is coarse, files that were written right before the command are compared by
content. What a command read or touched leaves times behind; after it, all of them are set to the same moment.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lopen.core.stat_cache import settled
from lopen.files.file_times import Seal, clock_offset, clock_passes, opened, set_time
from lopen.files.plain_files import (
    FOLDER_MODE,
    FileState,
    content_at,
    entries_in,
    is_blob,
    make_anew,
    make_folders,
    make_plain_folder,
    remove,
    state_at,
    state_of,
    write_file,
)

MOST_RENEWED = 1_000  # files whose times are set together whenever one of them is written


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
        self._unsure: set[str] = set()  # files and folders, written too lately for their state to tell
        self._names: dict[str, set[str]] = {"": set()}  # folder → what it holds
        self._folders: dict[str, FileState] = {}
        self._stale: set[str] = set()  # folders that the command touched
        self._used = False  # the command left other times
        self._time_ns = time.time_ns()  # of every file and folder
        self._still: set[str] = set()
        self._sealed = Seal(0, 0.0)
        top.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)

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

    def keep(self, path: str, *, still: bool = False) -> None:
        """Leave `path`, and what is below it, alone. `still`: programs compare its times with those of files."""
        self.kept.add(path)
        self._still |= {path} if still else set()
        self._add(path)
        self._forget_folders(path)

    def drop(self, paths: Iterable[str]) -> None:
        """Remove kept paths, but no file that is to be there."""
        for path in paths:
            self.kept.discard(path)
            self._still.discard(path)
            if path not in self.files and path not in self._names:
                self._remove(path)

    def clear(self) -> None:
        """Remove everything but the kept paths."""
        self.files, self._states, self._names, self._folders = {}, {}, {"": set()}, {}
        for path in self.kept:
            self._add(path)
        self.tidy()

    def seal(self) -> None:
        """Set the times, and take the state of what was written lately; to be called right before a command."""
        if self._used or (self._written and len(self.files) <= MOST_RENEWED):
            self._set_times()
        files = (self._unsure | self._written) & self.files.keys()
        changed_at = {}
        for path in (*files, *self._names.keys() - self._folders.keys()):
            if path in self._names:
                set_time(f"{self.top}/{path}", self._time_ns)
            # () where it is gone, which `tidy` finds
            state = state_at(f"{self.top}/{path}")
            (self._folders if path in self._names else self._states)[path] = state
            changed_at[path] = state[-1] if state else 0
        now = time.time_ns()
        sure = clock_passes(f"{self.top}.tick", max(changed_at.values(), default=0))
        self._unsure = set() if sure else {path for path, at in changed_at.items() if not settled(at, now)}
        self._written.clear()
        self._sealed = Seal(now, clock_offset())

    def _set_times(self) -> None:
        """Set all times to the same moment: to now, unless programs compare them with those of what is installed."""
        if not self._still:
            self._time_ns = time.time_ns()
        with opened(self.top) as top:
            for path in self.files:
                set_time(path, self._time_ns, top)
        self._written |= self.files.keys()
        self._folders.clear()
        self._used = False

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
        self._stale.update(path.rpartition("/")[0] for path in changed)
        self._make_anew()
        return Found(tuple(changed), tuple(added), contents)

    def _differences(self) -> tuple[list[str], list[str]]:
        """Return the paths that were changed or are missing, and those that were added."""
        changed: set[str] = set()
        added: set[str] = set()
        touched = self._touched()
        self._used |= touched != []
        for path in [""] if touched is None else touched:
            if path in self._names:
                self._list(path, changed, added, deep=touched is None)
            else:
                changed.add(path)
        unsure = (self._unsure & self.files.keys()) - changed
        same = (p for p in unsure if is_blob(f"{self.top}/{p}", self.files[p].blob, self._format))
        changed |= unsure.difference(same)
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
        self._stale.add(folder)
        if self._folders.get(folder, ())[:1] != (found.st_ino,):  # another folder was moved here
            deep = True
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

    def _make_anew(self) -> None:
        """Make the folders anew that the command touched."""
        stale = [folder for folder in self._stale if folder in self._names]
        self._stale.clear()
        for folder in stale:
            place = f"{self.top}/{folder}" if folder else str(self.top)
            base = f"{folder}/" if folder else ""
            still = [p for p in self._still if p.rpartition("/")[0] == folder]
            if any(not os.path.isdir(f"{self.top}/{p}") for p in still):  # a move changes its change time
                make_plain_folder(place)
                continue
            make_anew(place, f"{self.top}.anew")
            for path in (base + name for name in self._names[folder]):
                known = self._states if path in self.files else self._folders
                if path in known:
                    known[path] = state_at(f"{self.top}/{path}")
        for folder in {*stale, *(folder.rpartition("/")[0] for folder in stale)}:
            self._folders[folder] = state_at(f"{self.top}/{folder}")

    def _touched(self) -> list[str] | None:
        """Return the folders, parents first, and the files that have another state than before the command.

        None where a command locked a folder, and where the clock was set, which makes change times useless.
        """
        if self._sealed.clock_was_set():
            return None
        since, at, look = self._sealed.since_ns, self._time_ns, os.stat
        touched, unread = [], True
        with opened(self.top) as top:
            for known, paths in ((self._folders, sorted(self._names)), (self._states, self.files)):
                for path in paths:
                    try:
                        found = look(path or ".", dir_fd=top, follow_symlinks=False)
                    except PermissionError:
                        return None
                    except OSError:
                        touched.append(path)
                        continue
                    unread &= found.st_atime_ns == at
                    if found.st_ctime_ns >= since and state_of(found) != known.get(path):
                        touched.append(path)
        self._used |= not unread
        return touched + [path for path in self._unsure if path in self._names]

    def _forget(self, path: str) -> None:
        del self.files[path]
        self._states.pop(path, None)
        self._remove(path)

    def _forget_folders(self, path: str) -> None:
        while path:
            path = path.rpartition("/")[0]
            self._folders.pop(path, None)

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
        self._folders.pop(folder, None)
        names = self._names[folder]
        names.discard(name)
        if folder and not names:
            del self._names[folder]
            self._folders.pop(folder, None)
            self._remove(folder)

    def _write(self, wanted: Mapping[str, RoomFile]) -> None:
        contents = self._contents(dict.fromkeys(file.blob for file in wanted.values())) if wanted else {}
        folders: set[str] = set()
        for path, file in wanted.items():
            place = f"{self.top}/{path}"
            folder = os.path.dirname(place)
            if folder not in folders:
                self._forget_folders(path)
                make_folders(str(self.top), path)
                folders.add(folder)
            write_file(place, file.mode, contents[file.blob], self._time_ns)
            self._states.pop(path, None)
            self._written.add(path)
