"""Index files as files: copying one, and putting one in the place of the user's, under git's own lock."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from lopen.base.atomic_files import replace_at
from lopen.base.clock import Clock
from lopen.git.command import LOCK_WAITS_S
from lopen.git.errors import GitError, held_lock


def copy_index(source: Path, target: Path) -> bool:
    """Copy an index file, if there is one. Its times go along: git compares them to spot racy entries."""
    if not source.is_file():
        return False
    partial = target.with_name(f"{target.name}.new")
    shutil.copyfile(source, partial)
    shutil.copystat(source, partial)
    partial.replace(target)
    return True


def install_index(source: Path, target: Path, clock: Clock) -> None:
    """Replace the index `target` by a copy of `source`, durable on return.

    Raises:
        Locked: another git process held the index for about five seconds.
        GitError: it cannot be written.
    """
    lock = target.with_name(f"{target.name}.lock")
    waits = iter(LOCK_WAITS_S)
    while True:
        try:
            _install(source, target)
            return
        except FileExistsError:
            wait = next(waits, None)
            if wait is None:
                raise held_lock(str(lock)) from None
            clock.sleep(wait)
        except OSError as error:
            raise GitError(f"{target} cannot be written: {error.strerror}") from error


def _install(source: Path, target: Path) -> None:
    """Write under the name of git's lock; `FileExistsError` where another process holds it."""
    data, found = source.read_bytes(), source.stat()

    def keep_times(descriptor: int) -> None:
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
        os.utime(descriptor, ns=(found.st_atime_ns, found.st_mtime_ns))

    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        replace_at(folder, target.name, data, temporary=f"{target.name}.lock", prepare=keep_times)
    finally:
        os.close(folder)
