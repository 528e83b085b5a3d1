"""The size of `.lopen/`, and returning the database's free pages to the file system."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lopen.base.errors import StorageError
from lopen.storage.database import Database

# Not counted against the limit: files the user keeps (recordings, archives), and damaged files
UNCOUNTED = ("recordings", "session_archives", "corrupted")
SHARED_CACHE = ("home", "verify")  # folders of the cache whose entries are removed one by one
MIN_RECLAIMED_BYTES = 512 * 1024  # fewer free pages stay for the next rows


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes by the first name below `.lopen/`; the database's own files count as `state.db`."""

    parts: Mapping[str, int]

    @property
    def counted(self) -> int:
        """The bytes that count against the limit."""
        return sum(size for name, size in self.parts.items() if name not in UNCOUNTED)


def footprint(folder: Path, *, uncounted: bool = False) -> Footprint:
    """Measure a `.lopen/` folder; with `uncounted`, also the parts that do not count against the limit."""
    parts: dict[str, int] = {}
    for entry in _entries(folder):
        if uncounted or entry.name not in UNCOUNTED:
            name = "state.db" if entry.name.startswith("state.db") else entry.name
            parts[name] = parts.get(name, 0) + _size(entry)
    return Footprint(MappingProxyType(parts))


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # deleted meanwhile, or not readable
        return []


def _size(entry: os.DirEntry[str]) -> int:
    try:
        if entry.is_dir(follow_symlinks=False):
            return sum(_size(inner) for inner in _entries(entry.path))
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def trim_cache(folder: Path, limit: int, *, older_than: float) -> None:
    """Remove the largest entries of the cache that were not changed since `older_than` until half of `limit` is left.

    Everything in the cache is derived and can be made again; what a command uses at this moment is spared.
    """
    entries = [
        inner
        for entry in _entries(folder)
        for inner in (_entries(entry.path) if entry.name in SHARED_CACHE else [entry])
    ]
    sizes = {entry.path: _size(entry) for entry in entries}
    left = sum(sizes.values())
    for entry in sorted(entries, key=lambda entry: -sizes[entry.path]):
        if left <= limit // 2:
            return
        if _newest(entry) < older_than:
            remove(entry.path)
            left -= sizes[entry.path]


def remove(path: str) -> None:
    """Delete a file or folder; what cannot be deleted stays."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        os.unlink(path)


def _newest(entry: os.DirEntry[str]) -> float:
    """The time of the latest change in an entry."""
    try:
        changed = entry.stat(follow_symlinks=False).st_mtime
        inner = _entries(entry.path) if entry.is_dir(follow_symlinks=False) else []
        return max([changed, *map(_newest, inner)])
    except OSError:
        return 0.0


def reclaim(database: Database, *, fully: bool = False) -> None:
    """Return free pages to the file system if there are many, or `fully`. A busy database is left for later."""
    connection = database.connection
    try:
        if connection.execute("PRAGMA auto_vacuum").fetchone()[0] == 0:  # created by an older lopen
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("VACUUM")
        free = connection.execute("PRAGMA freelist_count").fetchone()[0]
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        if free and (fully or free * page > MIN_RECLAIMED_BYTES):
            connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free only one page
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)" if fully else "PRAGMA wal_checkpoint(PASSIVE)")
    except (StorageError, sqlite3.Error):  # another process reads or writes
        return
