"""What a command may not change in a git folder: compared after it, put back where it did. No process is started.

Contents are compared, not times: the files are few and small, and times can be set. Objects are too many for
that; of them only the names are kept, to notice when some vanish.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lopen.git.layout import Layout
from lopen.git.private import write_if_different

_GIT_DIR_FILES = (
    "HEAD",
    "config.worktree",
    "commondir",
    "gitdir",
    "MERGE_HEAD",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "refs",
)
_COMMON_FILES = (
    "HEAD",
    "config",
    "packed-refs",
    "shallow",
    "refs",
    "reftable",
    "hooks",
    "info",
    "objects/info/alternates",
    "objects/info/http-alternates",
)
_FOLDERS_NO_LINKS = ("objects", "objects/info", "objects/pack")  # of these only that they are no new links
_PASSES = 3

_Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A file or link as it was: `mode` with its type, and its bytes or its target."""

    mode: int
    content: bytes


@dataclass(frozen=True, slots=True)
class ObjectNames:
    """Which objects there are, by file name."""

    loose: frozenset[str]
    packs: frozenset[tuple[str, int]]  # name and size


@dataclass(frozen=True, slots=True)
class ProtectedState:
    """The protected files of a repository at one moment, and the names of its objects."""

    files: Mapping[Path, Kept]
    objects: ObjectNames


@dataclass(frozen=True, slots=True)
class Tampering:
    """What was found changed and has been put back, and whether objects that HEAD needs are gone."""

    restored: tuple[str, ...]
    objects_vanished: bool

    @property
    def found(self) -> bool:
        """Whether anything was changed at all."""
        return bool(self.restored) or self.objects_vanished


NOTHING = Tampering((), False)
NO_STATE = ProtectedState({}, ObjectNames(frozenset(), frozenset()))


def take_state(layout: Layout) -> ProtectedState:
    """HEAD, references, configuration, hooks, `info`, alternates and the marks of unfinished operations."""
    starts = [layout.git_dir / name for name in _GIT_DIR_FILES]
    starts += [layout.common_dir / name for name in _COMMON_FILES]
    starts += [link for name in _FOLDERS_NO_LINKS if (link := layout.common_dir / name).is_symlink()]
    starts += [file for name in ("HEAD", "gitdir", "commondir") for file in _worktree_files(layout, name)]
    if (layout.root / ".git").is_file() or (layout.root / ".git").is_symlink():
        starts.append(layout.root / ".git")
    files: dict[Path, Kept] = {}
    for start in starts:
        files.update(_kept_below(start))
    return ProtectedState(files, _object_names(layout.objects))


def put_back(layout: Layout, before: ProtectedState) -> tuple[str, ...]:
    """Make the protected files what they were; returns the paths that were not, sorted.

    More than one pass, because a link that was put in a folder's place hides what is to be compared behind it.
    """
    found: set[Path] = set()
    for _ in range(_PASSES):
        changed = _put_back_once(before, take_state(layout))
        if not changed:
            break
        found |= changed
    return tuple(sorted(str(path) for path in found))


def _put_back_once(before: ProtectedState, now: ProtectedState) -> set[Path]:
    added = {path for path in now.files if path not in before.files}
    lost = {path for path, kept in before.files.items() if now.files.get(path) != kept}
    for path in sorted(added):  # a link before what seems to lie behind it
        path.unlink(missing_ok=True)
    for path in lost:
        _write_back(path, before.files[path])
    return added | lost


def objects_missing(layout: Layout, before: ProtectedState) -> bool:
    """Whether object files are gone that were there before. Repacking does that too, so it wants a closer look."""
    now = _object_names(layout.objects)
    return bool(before.objects.loose - now.loose or before.objects.packs - now.packs)


def _worktree_files(layout: Layout, name: str) -> Iterator[Path]:
    yield from sorted((layout.common_dir / "worktrees").glob(f"*/{name}"))


# Path → how it looked to lstat and what it held: a file is read again only once any of that differs. This runs
# around every command; reading thirty files each time would cost more than starting the command does.
_SEEN: dict[str, tuple[_Signature, Path, Kept]] = {}
_MOST_SEEN = 20_000


def _kept_below(path: Path) -> Iterator[tuple[Path, Kept]]:
    """Every file and link at or below `path`; links are not followed. What cannot be read counts as empty."""
    waiting = [str(path)]
    while waiting:
        place = waiting.pop()
        try:
            found = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISDIR(found.st_mode):
            waiting += [f"{place}/{name}" for name in _listed(place)]
            continue
        signature = (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        seen = _SEEN.get(place)
        if seen is None or seen[0] != signature:
            if len(_SEEN) >= _MOST_SEEN:
                _SEEN.clear()
            kept = Path(place)
            seen = (signature, kept, Kept(found.st_mode, _content(kept, found.st_mode)))
            _SEEN[place] = seen
        yield seen[1], seen[2]


def _content(path: Path, mode: int) -> bytes:
    try:
        if stat.S_ISLNK(mode):
            return os.fsencode(path.readlink())
        return path.read_bytes() if stat.S_ISREG(mode) else b""  # a pipe would hold us
    except OSError:
        return b""


def _write_back(path: Path, kept: Kept) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)  # a command may have closed the folder
    _make_room(path)
    if stat.S_ISLNK(kept.mode):
        path.symlink_to(os.fsdecode(kept.content))
    elif stat.S_ISREG(kept.mode):
        write_if_different(path, kept.content)
        path.chmod(stat.S_IMODE(kept.mode))


def _make_room(path: Path) -> None:
    """Leave nothing but a regular file in the place of `path`."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        elif not stat.S_ISREG(mode):
            path.unlink()


def _object_names(objects: Path) -> ObjectNames:
    loose: set[str] = set()
    top = str(objects)
    for folder in _listed(top):
        if len(folder) == 2:
            loose.update(folder + name for name in _listed(f"{top}/{folder}"))
    packs = {
        (name, _size(objects / "pack" / name)) for name in _listed(f"{top}/pack") if name.endswith(".pack")
    }
    return ObjectNames(frozenset(loose), frozenset(packs))


def _listed(folder: Path | str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
