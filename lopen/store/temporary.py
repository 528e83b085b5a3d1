"""Temporary folders outside the project, which the next process removes if their owner was killed.

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
from pathlib import Path

PREFIX = "lopen-private-"
LOCK_NAME = ".held"
GRACE_PERIOD_S = 60.0  # from a folder's creation to its lock


class TemporaryFolder:
    """A private folder of this process (0700), until `remove`."""

    def __init__(self, where: Path | None = None) -> None:
        """Make the folder in `where`, which is created if necessary; by default in the system's temporary folder."""
        if where is not None:
            where.mkdir(mode=0o700, parents=True, exist_ok=True)
        where = where or Path(tempfile.gettempdir())
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


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.open(path / LOCK_NAME, flags)


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
