"""Reading small files and folders again and again, cheaply: a path's content is kept while its times are the same."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_SECOND_NS = 1_000_000_000
_SETTLED_NS = 20_000_000  # file times are kept in ticks: what changed this lately may change again unseen
_SETTLED_COARSE_NS = (
    2 * _SECOND_NS + _SETTLED_NS
)  # in whole seconds on some file systems, in even ones on FAT

Signature = tuple[int, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kinds:
    """The names in a folder: folders, links (wherever they lead), and all else."""

    folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


# What lstat said of a path, and what was read there: read again only once that differs. This runs around every
# command; reading thirty files and two hundred folders each time would cost more than starting the command does.
_KINDS: dict[str, tuple[Signature, Kinds]] = {}
_MOST_KNOWN = 20_000


def signature(found: os.stat_result) -> Signature:
    """Return numbers that change whenever the file does, or another one takes its place; see `settled`."""
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def signature_at(path: str | Path) -> Signature:
    """Return the signature of the file or link at `path`; () where there is none."""
    try:
        return signature(os.lstat(path))
    except OSError:
        return ()


def settled(changed_ns: int, looked_ns: int) -> bool:
    """Return True if every change after `looked_ns`, a moment before the reading, gives a file another time than this one."""
    ticks = _SETTLED_NS if changed_ns % _SECOND_NS else _SETTLED_COARSE_NS
    return looked_ns - changed_ns > ticks


def _remember(known: dict[str, T], place: str, what: T, found: os.stat_result, looked_ns: int) -> None:
    if not settled(found.st_ctime_ns, looked_ns):
        known.pop(place, None)
        return
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[place] = what


def kinds_in(folder: str) -> Kinds:
    """Return the entries of a real folder by kind; none where there is no folder, or it cannot be read."""
    now = time.time_ns()
    try:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):  # a link's own times say nothing of what lies behind it
            return Kinds()
        current = signature(found)
        known = _KINDS.get(folder)
        if known is None or known[0] != current:
            known = (current, _kinds(folder))
            _remember(_KINDS, folder, known, found, now)
    except OSError:
        return Kinds()
    return known[1]


def _kinds(folder: str) -> Kinds:
    with os.scandir(folder) as entries:
        every = list(entries)
    links = {e.name for e in every if e.is_symlink()}
    folders = {e.name for e in every if e.is_dir(follow_symlinks=False)}
    files = (e.name for e in every if e.name not in links | folders)
    return Kinds(tuple(folders), tuple(links), tuple(files))
