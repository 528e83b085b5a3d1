"""Index files as files: copying one, and putting one in the place of the user's, under git's own lock."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

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
            _install(source, target, lock)
            return
        except FileExistsError:
            wait = next(waits, None)
            if wait is None:
                raise held_lock(str(lock)) from None
            clock.sleep(wait)
        except OSError as error:
            raise GitError(f"{target} cannot be written: {error.strerror}") from error


def _install(source: Path, target: Path, lock: Path) -> None:
    descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(source.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        shutil.copystat(source, lock)
        lock.replace(target)
    except (
        BaseException
    ):  # a signal that unwinds lopen too: the lock is ours, nobody else would ever remove it
        lock.unlink(missing_ok=True)
        raise
