"""Temporary folders outside the project, which the next process removes if their owner was killed, and folders that
processes use in turn.

The owner of a folder holds a lock on a file in it as long as it runs. Each process that creates a folder first
removes those without a locked file. Process ids are not used, because containers may share the folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

PREFIX = "lopen-private-"
LOCK_NAME = ".held"
ATTEMPTS = 20  # to take a folder that other processes delete
GRACE_PERIOD_S = 60.0  # from a folder's creation to its lock


class TemporaryFolder:
    """A private folder of this process (0700), until `remove`."""

    def __init__(self) -> None:
        where = Path(tempfile.gettempdir())
        _remove_abandoned_once(where)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        self._lock = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Delete the folder and its contents; what cannot be deleted stays without an owner."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class KeptFolder:
    """A private folder (0700) whose content stays after `release`; the first of `where` that no other process holds."""

    def __init__(self, where: Path, name: str) -> None:
        places = (where / f"{name}-{number}" for number in count())
        self.path, self._lock = next(found for found in map(_held, places) if found is not None)

    def release(self, *, remove: bool = False) -> None:
        """Let another process have the folder; delete it before if `remove`."""
        if remove:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _held(path: Path) -> tuple[Path, int] | None:
    """Return the folder, made if necessary, with its lock; None where another process holds it."""
    for _ in range(ATTEMPTS - 1):
        with suppress(FileNotFoundError):  # another process deleted it, or the folder above, in between
            return _locked(path)
    return _locked(path)


def _locked(path: Path) -> tuple[Path, int] | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if path.is_symlink():
        return None
    lock = _open_lock(path, os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.lstat(path / LOCK_NAME)):
            raise BlockingIOError  # removed in between
    except BlockingIOError:
        os.close(lock)
        return None
    except FileNotFoundError:
        os.close(lock)
        raise
    os.utime(lock)
    return path, lock


def _open_lock(path: Path, create: int = 0) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | create
    return os.open(path / LOCK_NAME, flags, 0o600)


def last_use(path: Path) -> float:
    """Return when a process took the kept folder (seconds since the epoch), 0 where none did."""
    with suppress(OSError):
        return os.lstat(path / LOCK_NAME).st_mtime
    return 0.0


def remove_abandoned(where: Path) -> tuple[Path, ...]:
    """Delete this user's folders in `where` whose owners have ended; return those deleted."""
    return tuple(
        path for path in sorted(where.glob(f"{PREFIX}*")) if _may_be_abandoned(path) and remove_unheld(path)
    )


@cache
def _remove_abandoned_once(where: Path) -> None:
    with suppress(OSError):
        remove_abandoned(where)


def _may_be_abandoned(path: Path) -> bool:
    """Return True for this user's folders that are past the grace period.

    Nobody else can replace one meanwhile: in the system's temporary folder only owners rename and remove.
    """
    try:
        found = path.lstat()
    except OSError:
        return False
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return own and time.time() - found.st_ctime > GRACE_PERIOD_S


def remove_unheld(path: Path) -> bool:
    """Delete the folder if nobody holds its lock; return True if it is gone."""
    try:
        lock = _open_lock(path)
    except FileNotFoundError:  # its owner died before it made the lock
        with suppress(OSError):
            path.rmdir()
        return not path.exists()
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return not path.exists()
