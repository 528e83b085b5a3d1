"""Opening files so that nothing leaves the project root, whatever links say and whoever swaps them.

Every path is walked one component at a time, each opened relative to the folder before it and never through
a link (`O_NOFOLLOW`); a link is read and its target walked by the same rules. There is no moment between a
check and a use: what was checked is the descriptor in hand. The walk also yields the real name of what it
reached, which the protection rules are asked about again, so that a link to a protected file is no way in.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from lopen.workspace.protection import PathRefused, ToolRefused, read_protection, write_protection

MAX_PATH_BYTES = 4_000
MAX_NAME_BYTES = 255
MAX_LINKS = 40
TEMPORARY = ".lopen-tmp-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LEAVES = "paths are relative to the project root and stay inside it"


def split(path: str) -> tuple[str, ...]:
    """The components of a model's path; () is the root itself. Refuses what no honest path needs."""
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise PathRefused("the path holds characters that no file name can") from None
    shown = _shown(path)
    if "\0" in path:
        raise PathRefused("the path holds a NUL character")
    if len(raw) > MAX_PATH_BYTES:
        raise PathRefused(f"the path is longer than {MAX_PATH_BYTES} bytes", "use a shorter path")
    if path.startswith("/"):
        raise PathRefused(f"{shown} is absolute", _LEAVES)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise PathRefused(f"{shown} contains '..'", _LEAVES)
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in parts):
        raise PathRefused(f"a name in the path is longer than {MAX_NAME_BYTES} bytes")
    return parts


class _Walk:
    """Where a walk stands: the open folders from the root down, and their names."""

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
    def here(self) -> int:
        """The folder reached, as a descriptor."""
        return self.folders[-1]

    def down(self, name: str) -> None:
        """Into `name`, a real folder; raises OSError where it is something else."""
        self.folders.append(os.open(name, _FOLDER, dir_fd=self.here))
        self.names.append(name)

    def up(self) -> None:
        """To the folder this one was reached from; never above the root."""
        if not self.names:
            raise PathRefused(f"{self.shown} leaves the project through a symbolic link", _LEAVES)
        os.close(self.folders.pop())
        self.names.pop()

    def link(self, name: str) -> list[str] | None:
        """The components that the link `name` stands for, or None where `name` is no link."""
        try:
            target = os.readlink(name, dir_fd=self.here)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise
        self.links += 1
        if self.links > MAX_LINKS:
            raise PathRefused(f"{self.shown} goes through too many symbolic links")
        if target.startswith("/"):
            raise PathRefused(f"{self.shown} leaves the project through a symbolic link", _LEAVES)
        return [part for part in target.split("/") if part not in ("", ".")]


class Root:
    """A project's root folder, held open. Refusals are `ToolRefused`, worded for the model."""

    def __init__(self, root: Path) -> None:
        self.path = root.resolve()

    @contextlib.contextmanager
    def _walk(self, path: str, *, make: bool = False, own: bool = False) -> Iterator[tuple[_Walk, str]]:
        """Walk to the folder of `path`'s last component; yields the walk and that component's real name.

        The name is "" where the path ends at a folder by its own account (the root, a link ending in `..`).
        With `make` missing folders are made, `own` ones also where a model may make none.
        """
        todo = list(reversed(split(path)))
        shown = _shown(path) or "."
        with _translated(shown), _Walk(self.path, shown) as walk:
            last = ""
            while todo:
                name = todo.pop()
                if name == "..":
                    walk.up()
                elif (target := walk.link(name)) is not None:
                    todo.extend(reversed(target))
                elif not todo:
                    last = name
                else:
                    if make:
                        _make_folder(walk, name, own=own)
                    walk.down(name)
            yield walk, last

    @contextlib.contextmanager
    def open_file(self, path: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """A plain file for reading: its descriptor and its real path's parts. Never blocks on a pipe."""
        _refuse_reading(_shown(path), split(path))
        with self._walk(path) as (walk, name):
            parts = (*walk.names, name)
            _refuse_reading(walk.shown, parts)
            if not name:
                raise PathRefused(f"{walk.shown} is a folder", "list it with list_files")
            _require_plain(os.stat(name, dir_fd=walk.here, follow_symlinks=False), walk.shown)
            descriptor = os.open(name, _FILE, dir_fd=walk.here)
            try:
                _require_plain(os.fstat(descriptor), walk.shown)
                yield descriptor, parts
            finally:
                os.close(descriptor)

    def kind(self, path: str) -> tuple[str, tuple[str, ...]]:
        """ "file" or "folder", and the real path's parts, of something readable that exists."""
        _refuse_reading(_shown(path), split(path))
        with self._walk(path) as (walk, name):
            parts = (*walk.names, name) if name else tuple(walk.names)
            _refuse_reading(walk.shown, parts)
            if not name:
                return "folder", parts
            mode = os.stat(name, dir_fd=walk.here, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                return "folder", parts
            if stat.S_ISREG(mode):
                return "file", parts
            raise PathRefused(f"{walk.shown} is no plain file")

    def replace_file(self, path: str, content: bytes, *, own: bool = False) -> tuple[tuple[str, ...], bool]:
        """Write `content` as the whole of `path`; returns the real path's parts, and whether it is new.

        All or nothing, even across a power cut: readers see the old content or the new.
        Missing folders are made, an existing file's permissions are kept, and a link that stays inside is
        written through. Another name of the same file (a hard link) keeps the old content. `own`: lopen writes it
        for itself; no path is protected from that, and a new name reaches the disk too.
        """
        if not own:
            _refuse_writing(_shown(path), split(path))
        with self._walk(path, make=True, own=own) as (walk, name):
            parts = (*walk.names, name)
            if not name:
                raise PathRefused(f"{walk.shown} is a folder", "name the file to write")
            if not own:
                _refuse_writing(walk.shown, parts)
            before = _to_be_replaced(walk.here, name, walk.shown)
            _replace(walk.here, name, content, before)
            if own:
                os.fsync(walk.here)
            return parts, before is None


def _shown(path: str) -> str:
    return path if len(path) <= 200 else path[:200] + "…"


def _make_folder(walk: _Walk, name: str, *, own: bool) -> None:
    if not own:
        _refuse_writing(walk.shown, [*walk.names, name])
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=walk.here)


def _replace(folder: int, name: str, content: bytes, before: os.stat_result | None) -> None:
    """Temporary file beside the target, synced, then renamed over it; permissions are kept."""
    temporary = TEMPORARY + secrets.token_hex(8)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            if before is not None:
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)
                _tell_apart(descriptor, before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:  # a signal that unwinds lopen too: half a file is of use to nobody
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _tell_apart(descriptor: int, before: os.stat_result) -> None:
    """Move the time of a file of the same size and second on by one.

    Python's bytecode cache knows a source by its size and whole seconds: without this an edit within the second
    of a test run would be verified as it was before.
    """
    after = os.fstat(descriptor)
    if after.st_size == before.st_size and int(after.st_mtime) <= int(before.st_mtime):
        os.utime(descriptor, (int(before.st_mtime) + 1,) * 2)


def _to_be_replaced(folder: int, name: str, shown: str) -> os.stat_result | None:
    """The plain file that is there already, None where there is none yet."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _require_plain(found, shown)
    return found


def _require_plain(found: os.stat_result, shown: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise PathRefused(f"{shown} is a folder", "list it with list_files")
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"{shown} is no plain file (a pipe, socket, device or link)")


def _refuse_reading(shown: str, parts: tuple[str, ...] | list[str]) -> None:
    if reason := read_protection(parts):
        raise PathRefused(f"{shown} is not readable: {reason}")


def _refuse_writing(shown: str, parts: tuple[str, ...] | list[str]) -> None:
    if reason := write_protection(parts):
        raise PathRefused(f"{shown} is protected: {reason}", "leave it as it is and go on with the task")
    if any(not part.isprintable() for part in parts):
        raise PathRefused("the path holds control characters", "use a printable file name")
    if any(part.startswith(TEMPORARY) for part in parts):
        raise PathRefused(f"names that start with {TEMPORARY} are lopen's own")


@contextlib.contextmanager
def _translated(shown: str) -> Iterator[None]:
    """The system's errors in the model's terms."""
    try:
        yield
    except FileNotFoundError:
        raise ToolRefused(f"{shown} does not exist", "list_files shows what is there") from None
    except NotADirectoryError:
        raise ToolRefused(f"{shown} goes through something that is no folder") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathRefused(f"{shown} changed into a symbolic link", _LEAVES) from None
        raise ToolRefused(f"{shown}: {error.strerror or error}") from None
