"""Files, links and folders as a command may have left them: their state, writing and removing them without following links."""

from __future__ import annotations

import os
import shutil
import stat

LINK, EXECUTABLE = "120000", "100755"  # modes as git writes them; every other one is a plain file
FOLDER_MODE = 0o755
LONGEST_CONTENT = 64_000_000  # bytes of one file that is read

FileState = tuple[int, ...]


def remove(place: str) -> None:
    """Delete a file, a link or a whole folder, of any permissions."""
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            os.unlink(place)
            return
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        shutil.rmtree(place)
    except OSError:  # folders without permissions
        for folder, _, _ in os.walk(place):
            os.chmod(folder, 0o700)
        shutil.rmtree(place)


def state_at(place: str) -> FileState:
    """Return numbers that change with the file or link at `place`; () where there is none."""
    try:
        return state_of(os.lstat(place))
    except OSError:
        return ()


def state_of(found: os.stat_result) -> FileState:
    return found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns


def entries_in(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        os.chmod(folder, FOLDER_MODE)
        with os.scandir(folder) as entries:
            return list(entries)


def write_file(place: str, mode: str, content: bytes, time_ns: int | None = None) -> None:
    """Write a new file or link; `time_ns` becomes its time of change and of access."""
    if mode == LINK:
        os.symlink(os.fsdecode(content), place)
        if time_ns is not None:
            os.utime(place, ns=(time_ns, time_ns), follow_symlinks=False)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(place, flags, 0o755 if mode == EXECUTABLE else 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        if time_ns is not None:
            os.utime(descriptor, ns=(time_ns, time_ns))
    finally:
        os.close(descriptor)


def content_at(place: str) -> bytes | None:
    """Return the content of a file or the target of a link; None for anything else, and where it is very large."""
    try:
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode):
            return os.fsencode(os.readlink(place))
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST_CONTENT:
            return None
        with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except OSError:
        return None
