"""Take snapshots of files that no command may change, and restore them after a command.

These are specifications, `.lopen/config.toml` and `.claude/settings*`; the git room protects `.git`. A file with the
same inode, size and times counts as unchanged and is not read again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lopen.core.errors import LopenError
from lopen.core.files import replace_file
from lopen.core.stat_cache import kinds_in, settled, signature
from lopen.files.protection import SPECIFICATION, plain


class RestoreFailed(LopenError):
    """A command changed a protected file that lopen cannot restore; the run has to stop."""


Paths = Callable[[], Iterable[str]]

_Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One protected entry: a file with its content and permissions, or a link with its target."""

    signature: _Signature
    content: bytes | None
    mode: int
    target: str | None = None

    @property
    def digest(self) -> str:
        """A hash of what `equals` compares."""
        content = self.target.encode("utf-8", "surrogateescape") if self.target else self.content or b""
        return f"{self.mode:o} {hashlib.sha256(content).hexdigest()}"

    def equals(self, other: _Entry) -> bool:
        return (self.content, self.mode, self.target) == (other.content, other.mode, other.target)


Snapshot = Mapping[str, _Entry]
"""The protected files before a command, by path relative to the root. Opaque to the caller."""


class ProtectedPaths:
    """The protected files of one project. `extra` returns additional paths, relative to the root."""

    def __init__(self, root: Path, extra: Paths = tuple) -> None:
        self._root = root.resolve()
        self._top = str(self._root)
        self.state = self._root / ".lopen"  # lopen's folder in the project
        self._extra = extra
        self._known: dict[str, _Entry] = {}

    def snapshot(self) -> Snapshot:
        """Return the protected files as they are now."""
        names = (*protected_files(self._root), *self._extra())
        found = {name: entry for name in names if (entry := self._read(name)) is not None}
        self._known = found
        return found

    def restore(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Restore the files that a command changed, deleted or replaced and remove those it added; return the paths.

        Raises:
            RestoreFailed: the system refuses a change.
        """
        before = dict(snapshot)
        now = self.snapshot()
        changed = {name for name, entry in before.items() if name not in now or not entry.equals(now[name])}
        added = now.keys() - before.keys()
        try:
            for name in sorted(added):
                _remove(self._root / name)
            for name in sorted(changed):
                self._put_back(name, before[name])
        except OSError as error:
            raise RestoreFailed(
                f"a command changed {', '.join(sorted(changed | added))}, and lopen cannot restore it: {error}",
                hint="restore it by hand (git checkout), then: lopen resume",
            ) from error
        self._known = before
        return tuple(sorted(changed | added))

    def _read(self, name: str) -> _Entry | None:
        path, now = f"{self._top}/{name}", time.time_ns()
        try:
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                return _Entry((), None, 0, os.readlink(path))
            if not stat.S_ISREG(found.st_mode):
                return None
            current = signature(found)
            known = self._known.get(name)
            if known and known.signature == current:
                return known
            reliable = settled(found.st_ctime_ns, now)
            content = Path(path).read_bytes()
            return _Entry(current if reliable else (), content, stat.S_IMODE(found.st_mode))
        except OSError:
            return None

    def _put_back(self, name: str, entry: _Entry) -> None:
        path = self._root / name
        _make_real_folders(self._root, path.parent)
        _remove(path)
        if entry.target is not None:
            path.symlink_to(entry.target)
            return
        replace_file(path, entry.content or b"", mode=entry.mode, durable=False)


def protected_files(root: Path) -> list[str]:
    """Return the existing protected files and links, relative to `root`, sorted."""
    top = str(root)
    return sorted({*_links(top), ".lopen/config.toml", *_settings(top), *specifications(root)})


def specifications(root: Path) -> Iterator[str]:
    """Yield `specs/**/SPECIFICATION.md` in any case, the links that point to one, and their targets."""
    whole = str(root)
    first = f"{whole}/specs"
    pending, seen = [os.path.realpath(first) if os.path.islink(first) else first], set[str]()
    while pending:
        top = pending.pop()
        if top not in seen and (top == whole or top.startswith(whole.rstrip("/") + "/")):
            seen.add(top)
            yield from _specifications_below(whole, top, pending)


def _specifications_below(root: str, top: str, pending: list[str]) -> Iterator[str]:
    """Yield the specifications below one folder; append the targets of its links to `pending`."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        base = folder.removeprefix(root).lstrip("/")
        found = kinds_in(folder)
        yield from (f"{base}/{name}" for name in found.files if plain(name) == SPECIFICATION)
        for name in found.links:
            place = f"{folder}/{name}"
            if not os.path.isdir(place):
                yield from (f"{base}/{name}",) if plain(name) == SPECIFICATION else ()
            elif os.path.lexists(f"{place}/SPECIFICATION.md"):
                yield f"{base}/{name}"
                pending.append(os.path.realpath(place))
        waiting += (f"{folder}/{name}" for name in found.folders)


def _settings(root: str) -> Iterator[str]:
    folder = f"{root}/.claude"
    if os.path.isdir(folder) and not os.path.islink(folder):
        yield from (f".claude/{name}" for name in os.listdir(folder) if plain(name).startswith("settings"))


def _links(root: str) -> Iterator[str]:
    """Yield the folders of protected files that are links, because a command could redirect the link."""
    yield from (name for name in ("specs", ".claude", ".lopen") if os.path.islink(f"{root}/{name}"))


def _make_real_folders(root: Path, folder: Path) -> None:
    """Create real folders from the root down to `folder`; delete what is in their place."""
    place = root
    for part in folder.relative_to(root).parts:
        place = place / part
        if place.is_symlink() or not place.is_dir():
            _remove(place)
            place.mkdir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
