"""How much room `.lopen/` takes, and giving the database's free pages back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lopen.base.errors import StorageError
from lopen.storage.database import Database

# Beside the limit: what a person keeps (recordings, archives), what was damaged, what can be made again.
BESIDE = ("recordings", "session_archives", "cache", "corrupted")
FREE_PAGES_BYTES = 512 * 1024  # fewer are left for the next rows


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes by the first name below `.lopen/`; the database's own files count as `state.db`."""

    parts: Mapping[str, int]

    @property
    def counted(self) -> int:
        """Bytes that count against the limit."""
        return sum(size for name, size in self.parts.items() if name not in BESIDE)


def footprint(folder: Path, *, beside: bool = False) -> Footprint:
    """The footprint of a `.lopen/` folder; with `beside`, also of what does not count."""
    parts: dict[str, int] = {}
    for entry in _entries(folder):
        if beside or entry.name not in BESIDE:
            name = "state.db" if entry.name.startswith("state.db") else entry.name
            parts[name] = parts.get(name, 0) + _size(entry)
    return Footprint(MappingProxyType(parts))


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # gone meanwhile, or not ours to look into
        return []


def _size(entry: os.DirEntry[str]) -> int:
    try:
        if entry.is_dir(follow_symlinks=False):
            return sum(_size(inner) for inner in _entries(entry.path))
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def reclaim(database: Database, *, all_of_it: bool = False) -> None:
    """Give free pages back to the file system, where it is worth it. A busy database is left for later."""
    connection = database.connection
    try:
        if connection.execute("PRAGMA auto_vacuum").fetchone()[0] == 0:  # from before files could shrink
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("VACUUM")
        free = connection.execute("PRAGMA freelist_count").fetchone()[0]
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        if free and (all_of_it or free * page > FREE_PAGES_BYTES):
            connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page and stop
        connection.execute(
            "PRAGMA wal_checkpoint(TRUNCATE)" if all_of_it else "PRAGMA wal_checkpoint(PASSIVE)"
        )
    except (StorageError, sqlite3.Error):  # somebody writes or reads just now
        return
