"""Temporary folders outside of a project that no kill leaves behind for good.

A folder's owner holds a lock on a file in it for as long as it lives. Whoever makes the next one takes away those
that nobody holds; process numbers would not tell, where containers share a folder.
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
HELD = ".held"
YOUNG_S = 60.0  # a folder is given this long from its making to its lock


class TemporaryFolder:
    """A folder of this process alone (0700), until `remove`."""

    def __init__(self) -> None:
        where = tempfile.gettempdir()
        _sweep_once(where)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        self._lock = os.open(self.path / HELD, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Take it away with all it holds, once; what cannot be removed stays, and is nobody's."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(where: Path) -> tuple[Path, ...]:
    """Take away this person's folders in `where` whose owners are gone; which those were."""
    return tuple(path for path in sorted(where.glob(f"{PREFIX}*")) if _abandoned(path) and _swept(path))


@cache
def _sweep_once(where: str) -> None:
    with suppress(OSError):
        sweep(Path(where))


def _abandoned(path: Path) -> bool:
    """Whether it is an old enough folder of one's own. Nobody else can put another in its place meanwhile: the
    temporary folder lets only owners rename and remove."""
    try:
        found = path.lstat()
    except OSError:
        return False
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return own and time.time() - found.st_ctime > YOUNG_S


def _swept(path: Path) -> bool:
    try:
        lock = os.open(path / HELD, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:  # its maker died at once
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
