"""Write whole files in one step, and read small ones that may lie in a hostile place.

Readers see the old content or the new one, and so does who starts after a crash.

Standard library only. A file is written under a temporary name in its folder, synced, and renamed; a link in its
place is replaced, never followed. A repository decides what lies at `.lopen/config.toml`: a link to somebody's key, a
pipe that never ends, a gigabyte. Reading refuses all of these.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lopen.core.errors import LopenError, StorageError, WrongUsage

TEMPORARY = ".lopen-tmp-"  # the prefix of the names of unfinished files
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def store_text(path: Path, text: str) -> None:
    """Store a text file of lopen's own; see `store_bytes`."""
    store_bytes(path, text.encode("utf-8"))


def store_bytes(path: Path, data: bytes) -> None:
    """Replace a file of lopen's own that nobody else reads, durable on return; missing folders are made.

    Raises `StorageError` where that is not possible.
    """
    try:
        private_folder(path.parent)
        replace_file(path, data)
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror or error}", hint="free some space or make the folder writable"
        ) from error


def private_folder(folder: Path) -> None:
    """Create a folder, and those above it, that nobody else enters. Raises `OSError`."""
    if not folder.is_dir():
        private_folder(folder.parent)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError as error:  # another process made it, or it is a file
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder within the context; wait until no other process holds it. Raises `OSError`."""
    lock = os.open(folder, _FOLDER)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def replace_linked(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a person's file where it really lies: a link stays a link, and permissions stay as they are.

    `mode` is for a new file. Durable on return. Raises `OSError`.
    """
    target = path.resolve()
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode & 0o777
    replace_file(target, data, mode=mode)


def replace_file(
    path: Path | str,
    data: bytes,
    *,
    mode: int | None = 0o600,
    durable: bool = True,
) -> None:
    """Replace the file at `path`; `mode` None gives the permissions of any new file.

    `durable`: content and name are on the disk on return. Raises `OSError`.
    """
    place, name = os.path.split(path)
    folder = os.open(place or os.curdir, _FOLDER)
    try:
        temporary = _write_new(folder, data, mode, durable)
        try:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _remove(folder, temporary)
            raise
        if durable:
            os.fsync(folder)
    finally:
        os.close(folder)


def create_file(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Create the file at `path`, durable; an existing file stays. Raises `OSError`."""
    place, name = os.path.split(path)
    folder = os.open(place or os.curdir, _FOLDER)
    try:
        temporary = _write_new(folder, data, mode, durable=True)
        try:
            with suppress(FileExistsError):
                os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            _remove(folder, temporary)
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_new(folder: int, data: bytes, mode: int | None, durable: bool) -> str:
    """Write a new file under a temporary name and return the name; where that fails, none is left."""
    name = TEMPORARY + os.urandom(8).hex()
    descriptor = os.open(name, _NEW, 0o666 if mode is None else mode, dir_fd=folder)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if mode is not None:
                os.fchmod(descriptor, mode)  # despite the umask
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:  # a signal that unwinds lopen too: half a file is of use to nobody
        _remove(folder, name)
        raise
    return name


def _remove(folder: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def plain_name(name: str) -> str:
    """`name`, if it names a file in the folder it is put into; `StorageError` where it could lead elsewhere."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise StorageError(
            f"the file name {name!r} contains a folder or an unprintable character",
            hint="use a name without '/' and control characters",
        )
    return name


def refuse_link(folder: Path) -> None:
    """OSError where a folder of lopen's own was replaced by a link: it is not written through."""
    if folder.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))


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


Signature = tuple[int, ...]


def signature(found: os.stat_result) -> Signature:
    """Return numbers that change when the file does, or another one takes its place; the last is the time of change."""
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def signature_at(path: Path) -> Signature:
    """Return the signature of the file or link at `path`; () where there is none."""
    try:
        return signature(path.lstat())
    except OSError:
        return ()
