"""Open files without leaving the project root, even if another process swaps links meanwhile.

A walk opens every path one component at a time, relative to the previous folder and never through a link
(`O_NOFOLLOW`). It reads a link and walks its target by the same rules. Check and use cannot race, because both
apply to the same descriptor. The walk also yields the real path, to which the protection rules apply again: a
link to a protected file gives no access to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType

from lopen.core.files import TEMPORARY, replace_at
from lopen.files.protection import (
    PathRefused,
    ToolRefused,
    read_protection,
    write_protection,
)

MAX_PATH_BYTES = 4_000
MAX_NAME_BYTES = 255
MAX_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_RELATIVE_HINT = "paths are relative to the project root and stay inside it"


def split(path: str) -> tuple[str, ...]:
    """Split a path from the model into components; () is the root itself.

    Raises:
        PathRefused: the path is absolute, contains '..' or a NUL, is too long, or is not encodable.
    """
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise PathRefused("the path contains characters that are not allowed in file names") from None
    shown = _shown(path)
    if "\0" in path:
        raise PathRefused("the path contains a NUL character")
    if len(raw) > MAX_PATH_BYTES:
        raise PathRefused(f"the path is longer than {MAX_PATH_BYTES} bytes", "use a shorter path")
    if path.startswith("/"):
        raise PathRefused(f"{shown} is absolute", _RELATIVE_HINT)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise PathRefused(f"{shown} contains '..'", _RELATIVE_HINT)
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in parts):
        raise PathRefused(f"a name in the path is longer than {MAX_NAME_BYTES} bytes")
    return parts


class _Walk:
    """The open folders from the root down to the current one, and their names."""

    def __init__(self, root: Path, shown: str) -> None:
        self.folders = [os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        self.names: list[str] = []
        self.shown = shown
        self.links = 0

    def __enter__(self) -> _Walk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for folder in self.folders:
            os.close(folder)

    @property
    def current(self) -> int:
        """The descriptor of the current folder."""
        return self.folders[-1]

    def enter(self, name: str) -> None:
        """Descend into the real folder `name`; raise OSError if it is something else."""
        self.folders.append(os.open(name, _FOLDER, dir_fd=self.current))
        self.names.append(name)

    def ascend(self) -> None:
        """Return to the parent folder; refuse to go above the root."""
        if not self.names:
            raise PathRefused(f"{self.shown} leaves the project through a symbolic link", _RELATIVE_HINT)
        os.close(self.folders.pop())
        self.names.pop()

    def link_target(self, name: str) -> list[str] | None:
        """Return the components of the link's target, or None if `name` is not a link."""
        try:
            target = os.readlink(name, dir_fd=self.current)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise
        self.links += 1
        if self.links > MAX_LINKS:
            raise PathRefused(f"{self.shown} goes through too many symbolic links")
        if target.startswith("/"):
            raise PathRefused(f"{self.shown} leaves the project through a symbolic link", _RELATIVE_HINT)
        return [part for part in target.split("/") if part not in ("", ".")]


class Root:
    """A project's root folder. Every refusal is a `ToolRefused` with a message for the model."""

    def __init__(self, root: Path) -> None:
        self.path = root.resolve()

    @contextlib.contextmanager
    def _walk(self, path: str, *, make: bool = False, own: bool = False) -> Iterator[tuple[_Walk, str]]:
        """Walk to the folder of the path's last component; yield the walk and that component's real name.

        The name is "" if the path ends at a folder that is already open (the root, a link ending in `..`).
        `make` creates missing folders; `own` creates them in protected places too.
        """
        remaining = list(reversed(split(path)))
        shown = _shown(path) or "."
        with _system_errors_refused(shown), _Walk(self.path, shown) as walk:
            last = ""
            while remaining:
                name = remaining.pop()
                if name == "..":
                    walk.ascend()
                elif (target := walk.link_target(name)) is not None:
                    remaining.extend(reversed(target))
                elif not remaining:
                    last = name
                else:
                    if make:
                        self._make_folder(walk, name, own=own)
                    walk.enter(name)
            yield walk, last

    @contextlib.contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Open a regular file for reading; yield its descriptor and its real path's parts. Never block on a pipe."""
        _refuse_reading(_shown(path), split(path))
        with self._walk(path) as (walk, name):
            parts = (*walk.names, name)
            _refuse_reading(walk.shown, parts)
            if not name:
                raise PathRefused(f"{walk.shown} is a folder", "list it with list_files")
            _require_regular(os.stat(name, dir_fd=walk.current, follow_symlinks=False), walk.shown)
            descriptor = os.open(name, _FILE, dir_fd=walk.current)
            try:
                _require_regular(os.fstat(descriptor), walk.shown)
                yield descriptor, parts
            finally:
                os.close(descriptor)

    def kind(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Return "file" or "folder" and the real path's parts of a readable path that exists."""
        _refuse_reading(_shown(path), split(path))
        with self._walk(path) as (walk, name):
            parts = (*walk.names, name) if name else tuple(walk.names)
            _refuse_reading(walk.shown, parts)
            if not name:
                return "folder", parts
            mode = os.stat(name, dir_fd=walk.current, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                return "folder", parts
            if stat.S_ISREG(mode):
                return "file", parts
            raise PathRefused(f"{walk.shown} is not a regular file")

    def replace_file(self, path: str, content: bytes, *, own: bool = False) -> tuple[tuple[str, ...], bool]:
        """Write `content` as the whole of `path`; return the real path's parts and True if the file is new.

        The write is atomic and survives a power cut: readers see the old content or the new. It creates missing
        folders, preserves an existing file's permissions and follows a link that stays inside. Another name of
        the same file (a hard link) keeps the old content. With `own`, lopen writes a file of its own: protection
        does not apply, and the folder entry is synced too.
        """
        if not own:
            self._refuse_writing(_shown(path), split(path))
        with self._walk(path, make=True, own=own) as (walk, name):
            parts = (*walk.names, name)
            if not name:
                raise PathRefused(f"{walk.shown} is a folder", "name the file to write")
            if not own:
                self._refuse_writing(walk.shown, parts)
            previous = _existing_file(walk.current, name, walk.shown)
            prepare = partial(_keep_permissions, previous=previous) if previous is not None else None
            replace_at(walk.current, name, content, prepare=prepare)
            return parts, previous is None

    def _make_folder(self, walk: _Walk, name: str, *, own: bool) -> None:
        if not own:
            self._refuse_writing(walk.shown, [*walk.names, name])
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=walk.current)

    def _refuse_writing(self, shown: str, parts: tuple[str, ...] | list[str]) -> None:
        if reason := write_protection(parts):
            raise PathRefused(f"{shown} is protected: {reason}", "leave it as it is and go on with the task")
        if any(not part.isprintable() for part in parts):
            raise PathRefused("the path contains control characters", "use a printable file name")
        if any(part.startswith(TEMPORARY) for part in parts):
            raise PathRefused(f"names that start with {TEMPORARY} are reserved for lopen")


def _shown(path: str) -> str:
    return path if len(path) <= 200 else path[:200] + "…"


def _keep_permissions(descriptor: int, previous: os.stat_result) -> None:
    """Give the new file the permissions of the replaced file, and a later modification time."""
    os.fchmod(descriptor, stat.S_IMODE(previous.st_mode) & 0o777)
    _advance_mtime(descriptor, previous)


def _advance_mtime(descriptor: int, previous: os.stat_result) -> None:
    """Add a second to the modification time of a file with the previous size and second.

    Python's bytecode cache identifies a source by its size and whole seconds. Without this, a test run within
    the same second would use the bytecode of the previous content.
    """
    written = os.fstat(descriptor)
    if written.st_size == previous.st_size and int(written.st_mtime) <= int(previous.st_mtime):
        os.utime(descriptor, (int(previous.st_mtime) + 1,) * 2)


def _existing_file(folder: int, name: str, shown: str) -> os.stat_result | None:
    """Return the status of the regular file to replace, None if there is none."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _require_regular(found, shown)
    return found


def _require_regular(found: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise PathRefused(f"{shown} is a folder", "list it with list_files")
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"{shown} is not a regular file (it is a pipe, socket, device or link)")


def _refuse_reading(shown: str, parts: tuple[str, ...] | list[str]) -> None:
    if reason := read_protection(parts):
        raise PathRefused(f"{shown} is not readable: {reason}")


@contextlib.contextmanager
def _system_errors_refused(shown: str) -> Iterator[None]:
    """Translate the system's errors into refusals for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ToolRefused(f"{shown} does not exist", "list_files shows what is there") from None
    except NotADirectoryError:
        raise ToolRefused(f"{shown} goes through something that is not a folder") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathRefused(f"{shown} changed into a symbolic link", _RELATIVE_HINT) from None
        raise ToolRefused(f"{shown}: {error.strerror or error}") from None
