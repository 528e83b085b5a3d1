"""Files of a project that no command may change: found, remembered before a command, put back after it.

Specifications, `.lopen/config.toml` and `.claude/settings*`. Only what changed is read again:
a file whose inode, size and times are the same is taken to be the same. `.git` is the git room's to guard.

See docs/reference/sandbox.md.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lopen.base.atomic_files import replace_file
from lopen.base.errors import LopenError
from lopen.base.stat_cache import kinds_in, settled, signature
from lopen.workspace.protection import SPECIFICATION, plain


class ProtectedLost(LopenError):
    """A protected file was changed and could not be restored; the run has to stop."""


Paths = Callable[[], Iterable[str]]

_Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """One protected entry: a file with its content and permissions, or a link with its target."""

    signature: _Signature
    content: bytes | None
    mode: int
    target: str | None = None

    def same(self, other: _Kept) -> bool:
        return (self.content, self.mode, self.target) == (other.content, other.mode, other.target)


Taken = Mapping[str, _Kept]
"""What was there before a command, by path relative to the root. Opaque to the caller."""


class ProtectedPaths:
    """The protected files of one project. `extra` names more, relative to the root."""

    def __init__(self, root: Path, extra: Paths = tuple) -> None:
        self._root = root.resolve()
        self._top = str(self._root)
        self.state = self._root / ".lopen"  # lopen's folder in the project
        self._extra = extra
        self._known: dict[str, _Kept] = {}

    def take(self) -> Taken:
        """Remember them, before a command."""
        names = (*protected_files(self._root), *self._extra())
        found = {name: kept for name in names if (kept := self._look(name)) is not None}
        self._known = found
        return found

    def restore(self, taken: Taken) -> tuple[str, ...]:
        """Put back what a command changed, deleted or replaced, remove what it added; the paths concerned.

        Raises ProtectedLost where the system does not let it.
        """
        before = dict(taken)
        now = self.take()
        changed = {name for name, kept in before.items() if name not in now or not kept.same(now[name])}
        added = now.keys() - before.keys()
        try:
            for name in sorted(added):
                _remove(self._root / name)
            for name in sorted(changed):
                self._put_back(name, before[name])
        except OSError as error:
            raise ProtectedLost(
                f"a command changed {', '.join(sorted(changed | added))}, and it could not be put back: {error}",
                hint="put it back by hand (git checkout), then: lopen resume",
            ) from error
        self._known = before
        return tuple(sorted(changed | added))

    def _look(self, name: str) -> _Kept | None:
        path, now = f"{self._top}/{name}", time.time_ns()
        try:
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                return _Kept((), None, 0, os.readlink(path))
            if not stat.S_ISREG(found.st_mode):
                return None
            current = signature(found)
            known = self._known.get(name)
            if known and known.signature == current:
                return known
            reliable = settled(found.st_ctime_ns, now)
            content = Path(path).read_bytes()
            return _Kept(current if reliable else (), content, stat.S_IMODE(found.st_mode))
        except OSError:
            return None

    def _put_back(self, name: str, kept: _Kept) -> None:
        path = self._root / name
        _make_real(self._root, path.parent)
        _remove(path)
        if kept.target is not None:
            path.symlink_to(kept.target)
            return
        replace_file(path, kept.content or b"", mode=kept.mode, durable=False)


def protected_files(root: Path) -> list[str]:
    """Protected files and links that exist, relative to `root`, sorted."""
    top = str(root)
    return sorted({*_links(top), ".lopen/config.toml", *_settings(top), *specifications(root)})


def specifications(root: Path) -> Iterator[str]:
    """`specs/**/SPECIFICATION.md` in any spelling of case, links that stand for one, and what those lead to."""
    whole = str(root)
    first = f"{whole}/specs"
    pending, seen = [os.path.realpath(first) if os.path.islink(first) else first], set[str]()
    while pending:
        top = pending.pop()
        if top not in seen and (top == whole or top.startswith(whole.rstrip("/") + "/")):
            seen.add(top)
            yield from _specifications_below(whole, top, pending)


def _specifications_below(root: str, top: str, pending: list[str]) -> Iterator[str]:
    """Those below one folder; where its links lead joins `pending`."""
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
    """Folders of protected files that are links: the link is what a command could turn."""
    yield from (name for name in ("specs", ".claude", ".lopen") if os.path.islink(f"{root}/{name}"))


def _make_real(root: Path, folder: Path) -> None:
    """Folders from the root down to `folder`, each a real one: what stands in the way goes."""
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
