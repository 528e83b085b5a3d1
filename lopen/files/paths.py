"""Open and replace the files of a project without leaving its root.

A path is resolved first, every link in it followed, and then checked: it must lie in the root, and protection applies to
its real name too, so that a link to a protected file gives no access to it. Nothing swaps a link between the check and
the use, because no command runs while a file tool does (docs/decisions/0006-resolved-paths.md).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from lopen.core.files import TEMPORARY, replace_file
from lopen.files.protection import PathRefused, ToolRefused, read_protection, write_protection

MAX_PATH_BYTES = 4_000
MAX_NAME_BYTES = 255
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


class Root:
    """A project's root folder. Every refusal is a `ToolRefused` with a message for the model."""

    def __init__(self, root: Path) -> None:
        self.path = root.resolve()

    def _resolve(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Return the real place of a path, and its parts below the root."""
        place = os.path.realpath(self.path.joinpath(*split(path)))
        if Path(place) != self.path and self.path not in Path(place).parents:
            raise PathRefused(f"{_shown(path)} leaves the project through a symbolic link", _RELATIVE_HINT)
        return place, Path(place).relative_to(self.path).parts

    def _readable(self, path: str) -> tuple[str, tuple[str, ...], os.stat_result]:
        """Return the real place, its parts and the status of a path that may be read."""
        place, parts = self._resolve(path)
        for names in (split(path), parts):
            if reason := read_protection(names):
                raise PathRefused(f"{_shown(path)} is not readable: {reason}")
        return place, parts, os.lstat(place)

    @contextlib.contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Open a regular file for reading; yield its descriptor and its real path's parts. Never block on a pipe."""
        with _system_errors_refused(_shown(path)):
            place, parts, found = self._readable(path)
            _require_regular(found, _shown(path))
            descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                yield descriptor, parts
            finally:
                os.close(descriptor)

    def kind(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Return "file" or "folder" and the real path's parts of a readable path that exists."""
        with _system_errors_refused(_shown(path)):
            _, parts, found = self._readable(path)
        if stat.S_ISDIR(found.st_mode):
            return "folder", parts
        _require_regular(found, _shown(path))
        return "file", parts

    def replace_file(self, path: str, content: bytes, *, own: bool = False) -> tuple[tuple[str, ...], bool]:
        """Write `content` as the whole of `path`; return the real path's parts and True if the file is new.

        The write is atomic and survives a power cut: readers see the old content or the new. It creates missing
        folders, preserves an existing file's permissions and follows a link that stays inside. Another name of
        the same file (a hard link) keeps the old content. With `own`, lopen writes a file of its own: protection
        does not apply.
        """
        shown = _shown(path)
        with _system_errors_refused(shown):
            place, parts = self._resolve(path)
            if not own:
                self._refuse_writing(shown, split(path))
                self._refuse_writing(shown, parts)
            previous = _existing_file(place, shown)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if previous is None:
                replace_file(place, content, mode=None)
            else:
                replace_file(place, content, mode=stat.S_IMODE(previous.st_mode) & 0o777)
                _advance_mtime(place, previous)
            return parts, previous is None

    def _refuse_writing(self, shown: str, parts: tuple[str, ...] | list[str]) -> None:
        if reason := write_protection(parts):
            raise PathRefused(f"{shown} is protected: {reason}", "leave it as it is and go on with the task")
        if any(not part.isprintable() for part in parts):
            raise PathRefused("the path contains control characters", "use a printable file name")
        if any(part.startswith(TEMPORARY) for part in parts):
            raise PathRefused(f"names that start with {TEMPORARY} are reserved for lopen")


def _shown(path: str) -> str:
    return path if len(path) <= 200 else path[:200] + "…"


def _advance_mtime(place: str, previous: os.stat_result) -> None:
    """Add a second to the modification time of a file with the previous size and second.

    Python's bytecode cache identifies a source by its size and whole seconds. Without this, a test run within
    the same second would use the bytecode of the previous content.
    """
    written = os.lstat(place)
    if written.st_size == previous.st_size and int(written.st_mtime) <= int(previous.st_mtime):
        os.utime(place, (int(previous.st_mtime) + 1,) * 2, follow_symlinks=False)


def _existing_file(place: str, shown: str) -> os.stat_result | None:
    """Return the status of the regular file to replace, None if there is none."""
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        return None
    _require_regular(found, shown)
    return found


def _require_regular(found: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise PathRefused(f"{shown} is a folder", "list it with list_files")
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"{shown} is not a regular file (it is a pipe, socket, device or link)")


@contextlib.contextmanager
def _system_errors_refused(shown: str) -> Iterator[None]:
    """Translate the system's errors into refusals for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ToolRefused(f"{shown} does not exist", "list_files shows what is there") from None
    except (NotADirectoryError, FileExistsError):
        raise ToolRefused(f"{shown} goes through something that is not a folder") from None
    except OSError as error:
        raise ToolRefused(f"{shown}: {error.strerror or error}") from None
