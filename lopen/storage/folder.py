"""`.lopen/`: lopen's folder in a project, and what keeps its state out of git (docs/reference/storage.md)."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from lopen.base.atomic_files import store_text
from lopen.base.errors import LopenError, StorageError

DATABASE = "state.db"
CACHE = "cache"
IGNORED = "# written by lopen: everything but this file and the configuration stays out of git\n*\n!.gitignore\n!config.toml\n"


def state_folder(root: Path) -> Path:
    """`.lopen/`, made with its `.gitignore` where it is new; a link in its place, or in it, is refused.

    A `.gitignore` that is missing beside a database was taken away by a switch of branches. It is not written
    anew then: an untracked file would stand in the way of switching back, and of merging.
    """
    folder = root / ".lopen"
    require_plain(folder)
    if not (folder / DATABASE).exists():
        try:
            ignore_state(root)
        except StorageError as error:
            why = getattr(error.__cause__, "strerror", None) or error.message
            raise StorageError(
                f"nothing can be written in {folder}: {why}",
                hint=f"lopen keeps its state there: make {root} writable, or work on a copy",
            ) from error
    return folder


def require_plain(folder: Path) -> None:
    """Refuse a `.lopen/` that is a link or a file, or whose entries are anything but plain files and folders.

    A link that came with a repository would have lopen read and write wherever it leads. One in the cache, which
    can be deleted at any time, is taken away.
    """
    if folder.is_symlink():
        raise LopenError(
            f"{folder} is a link", hint="remove it: lopen keeps its state in a folder of the project"
        )
    entries = _entries(folder)
    if not entries and folder.exists() and not folder.is_dir():
        raise LopenError(
            f"{folder} is a file where a folder belongs",
            hint="rename or remove it: lopen keeps its state in a folder of that name",
        )
    for entry in entries:
        if entry.name == CACHE:
            _without_links(entry)
            continue
        _require_plain(entry)
        if entry.is_dir():
            for inner in _entries(entry.path):
                _require_plain(inner)


def _require_plain(entry: os.DirEntry[str]) -> None:
    if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
        what = "a link" if entry.is_symlink() else "no plain file"
        raise LopenError(
            f"{entry.path} is {what}", hint="remove it: lopen keeps its state in plain files of the project"
        )


def _without_links(cache: os.DirEntry[str]) -> None:
    for entry in (cache, *(() if cache.is_symlink() else _entries(cache.path))):
        if entry.is_symlink():
            os.unlink(entry.path)


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """What lies in a folder; nothing where there is none."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise LopenError(f"{folder}: {error.strerror or error}", hint="make it readable") from error


def ignore_state(root: Path) -> None:
    """Write `.lopen/.gitignore` where there is none."""
    ignore = root / ".lopen" / ".gitignore"
    if not ignore.exists():
        store_text(ignore, IGNORED)


def set_aside(path: Path, state: Path) -> Path:
    """Move a file of lopen's to `corrupted/` in `state`, a database with what belongs to it; where it lies now."""
    folder = state / "corrupted"
    folder.mkdir(exist_ok=True)
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    kept = folder / f"{stamp}-{path.name}"
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.replace(folder / f"{stamp}-{path.name}{suffix}")
    return kept
