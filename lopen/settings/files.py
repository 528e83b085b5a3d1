"""Reading and writing small files that may lie in a hostile place. Standard library only.

A repository decides what lies at `.lopen/config.toml`: a symbolic link to somebody's key, a pipe that never
ends, a gigabyte. Reading refuses all of these; writing replaces the file whole or not at all.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from lopen.base.atomic_files import replace_linked
from lopen.base.errors import LopenError, WrongUsage

MAX_BYTES = 256 * 1024


def read_own(path: Path) -> str | None:
    """The text of a file of the person's own (links are theirs to make); None if there is none."""
    return _read(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def read_foreign(path: Path) -> str | None:
    """The text of a file out of a repository; None if there is none.

    Neither the file nor its folder may be a symbolic link (`WrongUsage`).
    """
    if path.parent.is_symlink():
        raise _refused(path.parent, "is a symbolic link")
    return _read(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)


def _read(path: Path, flags: int) -> str | None:
    try:
        descriptor = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refused(path, "is a symbolic link") from error
        raise LopenError(f"{path}: {error.strerror}", hint="make it readable, or remove it") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(path, "is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise _refused(path, f"is larger than {MAX_BYTES // 1024} KB")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _refused(path, f"is not UTF-8 (line {line})") from error


def _refused(path: Path, why: str) -> WrongUsage:
    return WrongUsage(f"{path} {why}", hint="replace it by an ordinary file, or remove it")


def write_config(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Replace a configuration in one step; links and permissions stay as they are.

    `mode` is for a new file. Folders are made (0700).
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_linked(path, text.encode("utf-8"), mode=mode)
    except OSError as error:
        raise LopenError(f"{path}: {error.strerror or error}", hint="make the folder writable") from error
