"""Writing a whole file of lopen's own: durable, or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from lopen.base.errors import StorageError


def write_whole(path: Path, text: str) -> None:
    """Replace `path` by `text` atomically; a link in its place is replaced, never followed."""
    write_bytes(path, text.encode("utf-8"), mode=0o644)


def write_bytes(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """The same for bytes, readable by their owner alone unless `mode` says otherwise."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            Path(name).replace(path)
            sync_folder(path.parent)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(
            f"{path}: {error.strerror or error}", hint="free some space or make the folder writable"
        ) from error


def plain_name(name: str) -> str:
    """`name`, if it names a file in the folder it is put into; `StorageError` where it could lead elsewhere."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise StorageError(f"{name!r} is no plain file name; nothing is read or written under it")
    return name


def refuse_link(folder: Path) -> None:
    """OSError where a folder of lopen's own was replaced by a link: it is not written through."""
    if folder.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))


def sync_folder(folder: Path) -> None:
    """The new name itself reaches the disk only with its folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
