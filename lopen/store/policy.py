"""The retention limits: the settings' `memory` and `session` tables as plain values, and the size of `.lopen/`."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from lopen.core.errors import StorageError
from lopen.store.database import Database

if TYPE_CHECKING:
    from lopen.settings.schema import Settings

SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Limits that rotate a log, and the number of rotations to keep. Sizes in bytes, ages in seconds."""

    max_bytes: int = 50 * 1024
    max_lines: int = 1_000
    max_age_s: float = 7 * SECONDS_PER_DAY
    keep: int = 5


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Limits beyond which data is archived or deleted."""

    logs: LogLimits = LogLimits()
    sessions: int = 10  # the newest ones; all unfinished ones stay
    session_age_s: float = 7 * SECONDS_PER_DAY  # since a session finished
    evidence: int = 100
    tool_history: int = 50
    state_bytes: int = 5 * 1024 * 1024
    limits_age_s: float = SECONDS_PER_DAY  # of counters of Claude Code's sessions, since their last change


def retention_policy(settings: Settings) -> RetentionPolicy:
    """Return the policy of the settings."""
    memory, session = settings.memory, settings.session
    return RetentionPolicy(
        LogLimits(
            memory.log_max_kb * 1024,
            memory.log_max_lines,
            memory.log_max_age_days * SECONDS_PER_DAY,
            memory.log_keep,
        ),
        session.retention,
        session.retention_days * SECONDS_PER_DAY,
        memory.evidence_max,
        memory.tool_history_max,
        limits_age_s=settings.budget.ttl_s,
    )


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
        free = connection.execute("PRAGMA freelist_count").fetchone()[0]
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        if free and (fully or free * page > MIN_RECLAIMED_BYTES):
            connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free only one page
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)" if fully else "PRAGMA wal_checkpoint(PASSIVE)")
    except (StorageError, sqlite3.Error):  # another process reads or writes
        return
