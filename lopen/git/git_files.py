"""Files in a git folder: read, replaced as a whole, copied as an index, and the lock files of git.

git holds a lock through a file beside the one it writes, and a killed git does not remove it.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from lopen.core.clock import Clock
from lopen.core.files import replace_file
from lopen.git.command import LOCK_WAITS_S
from lopen.git.errors import GitError, lock_error
from lopen.git.layout import Layout
from lopen.git.refs import HEADS


def read_or_empty(path: Path) -> bytes:
    """Return the content of a file; empty if it does not exist or is not readable."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def replace_if_different(path: Path, wanted: bytes) -> None:
    """Replace a file as a whole if its content differs; a symbolic link in its place is replaced, not followed."""
    if not path.is_symlink() and read_or_empty(path) == wanted and path.is_file():
        return
    replace_file(path, wanted, durable=False)


def copy_index(source: Path, target: Path) -> bool:
    """Copy an index file with its times, which git compares to find racy entries; return False if there is none."""
    if not source.is_file():
        return False
    partial = target.with_name(f"{target.name}.new")
    shutil.copyfile(source, partial)
    shutil.copystat(source, partial)
    target.unlink(missing_ok=True)  # ext4 writes a file to the disk that replaces another one
    partial.replace(target)
    return True


def install_index(source: Path, target: Path, clock: Clock) -> None:
    """Replace the index `target` by a copy of `source` under git's own lock, durable on return.

    Raises:
        GitLocked: another git process held the index for about five seconds.
        GitError: the index cannot be written.
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
                raise lock_error(str(lock)) from None
            clock.sleep(wait)
        except OSError as error:
            raise GitError(f"cannot write {target}: {error.strerror}") from error


def _install(source: Path, target: Path) -> None:
    """Write under the name of git's lock; raises `FileExistsError` if another process holds it."""
    data, found = source.read_bytes(), source.stat()

    def keep_times(descriptor: int) -> None:
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
        os.utime(descriptor, ns=(found.st_atime_ns, found.st_mtime_ns))

    replace_file(target, data, mode=None, temporary=f"{target.name}.lock", prepare=keep_times)


def remove_stale_lock(layout: Layout, branch: str) -> tuple[str, ...]:
    """Remove the lock on lopen's `branch` that a killed run left; return its path.

    The caller holds lopen's own lock on the module. A clone's other locks go when it is opened.
    """
    lock = layout.common_dir / f"{HEADS}{branch}.lock"
    if not lock.is_file():
        return ()
    lock.unlink(missing_ok=True)
    return (str(lock),)
