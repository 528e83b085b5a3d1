"""What a command may not change in a git folder: compared after it, put back where it did. No process is started.

Contents are compared, not times: the files are few and small, and times can be set. Objects are too many for
that; of them only the names are kept, to notice when some vanish.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lopen.base.stat_cache import NONE, Kept, is_folder, keep_below, listed, names_in, size_of
from lopen.git.git_files import replace_if_different
from lopen.git.layout import Layout
from lopen.git.nested import NO_NESTED, Nested, find_nested
from lopen.git.refs import References
from lopen.git.snapshot import Snapshots

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
_REAL_FOLDERS = ("objects", "objects/info", "objects/pack")  # of these only that they stay folders
# Where others move their branches meanwhile: what is theirs is not compared.
_SHARED_FILES = frozenset({"HEAD", "packed-refs", "refs", "reftable"})
_WORKTREE_FILES = ("HEAD", "gitdir", "commondir")
_PASSES = 3

_EXACT_NAMES = sys.platform.startswith("linux")  # elsewhere HEAD may be listed as head


@dataclass(frozen=True, slots=True)
class ObjectNames:
    """Which objects there are, by file name."""

    loose: Mapping[str, frozenset[str]]  # by folder
    packs: frozenset[tuple[str, int]]  # name and size


@dataclass(frozen=True, slots=True)
class ProtectedState:
    """The protected files of a repository at one moment, and the names of its objects."""

    files: Mapping[str, Kept]  # by absolute path
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
NO_STATE = ProtectedState({}, ObjectNames({}, frozenset()))


def take_state(layout: Layout, own: str = "", nested: Nested = NO_NESTED) -> ProtectedState:
    """HEAD, references, configuration, hooks, `info`, alternates and the marks of unfinished operations.

    With `own` (a full reference name) that is the only shared reference looked at, and no other work tree is.
    Of the `nested` repositories only what decides which programs git starts.
    """
    return ProtectedState(_files(layout, own, nested), _object_names(str(layout.objects)))


def _files(layout: Layout, own: str, nested: Nested) -> dict[str, Kept]:
    starts, folders = _starts(layout, own, nested)
    files: dict[str, Kept] = {}
    for parent, children in starts:
        for name in children & names_in(parent) if _EXACT_NAMES else children:
            keep_below(f"{parent}/{name}", files)
    for other in () if own else _worktree_files(f"{layout.common_dir}/worktrees"):
        keep_below(other, files)
    for folder in folders:
        if not is_folder(folder):
            keep_below(folder, files)
    return files


@lru_cache(maxsize=8)
def _starts(
    layout: Layout, own: str, nested: Nested
) -> tuple[tuple[tuple[str, frozenset[str]], ...], tuple[str, ...]]:
    """What is looked at whatever it is, by folder, and what only where it is no folder any more."""
    common = [name for name in _COMMON_FILES if not (own and name in _SHARED_FILES)]
    starts = [f"{layout.git_dir}/{name}" for name in _GIT_DIR_FILES]
    starts += [f"{layout.common_dir}/{name}" for name in (*common, *([own] if own else []))]
    starts += nested.starts
    children: dict[str, set[str]] = {}
    for start in starts:
        parent, _, name = start.rpartition("/")
        children.setdefault(parent, set()).add(name)
    folders = [f"{layout.root}/.git", *(f"{layout.common_dir}/{name}" for name in _REAL_FOLDERS)]
    every = (*folders, *nested.folders)
    return tuple((parent, frozenset(names)) for parent, names in children.items()), every


def put_back(
    layout: Layout, before: ProtectedState, own: str = "", nested: Nested = NO_NESTED
) -> tuple[str, ...]:
    """Make the protected files what they were; returns the paths that were not, sorted.

    More than one pass, because a link that was put in a folder's place hides what is to be compared behind it.
    """
    found: set[str] = set()
    for _ in range(_PASSES):
        changed = _put_back_once(before, _files(layout, own, nested))
        if not changed:
            break
        found |= changed
    return tuple(sorted(found))


def _put_back_once(before: ProtectedState, now: Mapping[str, Kept]) -> set[str]:
    added = {path for path in now if path not in before.files}
    lost = {path for path, kept in before.files.items() if now.get(path) != kept}
    for path in sorted(added):  # a link before what seems to lie behind it
        Path(path).unlink(missing_ok=True)
    for path in lost:
        _write_back(Path(path), before.files[path])
    return added | lost


def objects_missing(layout: Layout, before: ProtectedState) -> bool:
    """Whether object files are gone that were there before. Repacking does that too, so it wants a closer look."""
    now = _object_names(str(layout.objects))
    gone = (
        names is not (left := now.loose.get(folder, NONE)) and names - left
        for folder, names in before.objects.loose.items()
    )
    return any(gone) or bool(before.objects.packs - now.packs)


def _worktree_files(folder: str) -> Iterator[str]:
    for name in listed(folder):
        yield from (f"{folder}/{name}/{file}" for file in _WORKTREE_FILES)


def _write_back(path: Path, kept: Kept) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)  # a command may have closed the folder
    _make_room(path)
    if stat.S_ISLNK(kept.mode):
        path.symlink_to(os.fsdecode(kept.content))
    elif stat.S_ISREG(kept.mode):
        replace_if_different(path, kept.content)
        path.chmod(stat.S_IMODE(kept.mode))


def _make_room(path: Path) -> None:
    """Leave nothing but a regular file in the place of `path`."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        elif not stat.S_ISREG(mode):
            path.unlink()


def _object_names(objects: str) -> ObjectNames:
    folders = ((name, f"{objects}/{name}") for name in names_in(objects) if len(name) == 2)
    loose = {name: names_in(folder) for name, folder in folders}
    pack = f"{objects}/pack"
    packs = {(name, size_of(f"{pack}/{name}")) for name in names_in(pack) if name.endswith(".pack")}
    return ObjectNames(loose, frozenset(packs))


class GitFolderGuard:
    """Where there is no repository: nothing of git to keep."""

    def state(self) -> ProtectedState:
        """HEAD, references, configuration and hooks as they are now. Starts no process but the first time."""
        return NO_STATE

    def put_back(self, before: ProtectedState) -> Tampering:
        """Undo what a command changed of the protected files, and look whether objects vanished."""
        return NOTHING

    def exposed(self) -> tuple[str, ...]:
        """What a sandbox has to keep read-only besides `.git`, by absolute path: git's folders elsewhere in the
        project, the `.git` of nested repositories, and `settings`.
        """
        return ()

    def scattered(self) -> bool:
        """Whether there is more of git to guard than one `.git` folder at the top."""
        return False

    def settings(self) -> tuple[str, ...]:
        """Versioned `.claude/settings*` and `.lopen` further down, relative to the root."""
        return ()

    def look_again(self) -> None:
        """HEAD moved, and with it which nested repositories and settings there are."""


class RepositoryGuard(GitFolderGuard):
    """Over one repository. `own` is the only shared reference that is guarded, where others move theirs meanwhile."""

    def __init__(self, layout: Layout, references: References, snapshots: Snapshots, own: str = "") -> None:
        self._layout = layout
        self._references = references
        self._snapshots = snapshots
        self._own = own
        self._nested: Nested | None = None  # not looked for yet

    def look_again(self) -> None:
        self._nested = None

    def state(self) -> ProtectedState:
        return take_state(self._layout, self._own, self._inside())

    def put_back(self, before: ProtectedState) -> Tampering:
        restored = put_back(self._layout, before, self._own, self._inside())
        vanished = objects_missing(self._layout, before) and not self._is_whole()
        return Tampering(restored, vanished)

    def exposed(self) -> tuple[str, ...]:
        root = f"{self._layout.root}/"
        folders = map(str, (self._layout.git_dir, self._layout.common_dir))
        elsewhere = [folder for folder in folders if folder.startswith(root)]
        nested = self._inside()
        places = (*elsewhere, *nested.present, *(root + path for path in nested.settings))
        return tuple(p for p in dict.fromkeys(places) if not f"{p}/".startswith(f"{root}.git/"))

    def scattered(self) -> bool:
        return bool(self._inside().starts) or self._layout.git_dir != self._layout.root / ".git"

    def settings(self) -> tuple[str, ...]:
        return self._inside().settings

    def _inside(self) -> Nested:
        """The nested repositories and settings; looked for once, and again when HEAD moved."""
        if self._nested is None:
            self._snapshots.follow(self._references.head().commit)
            git = self._snapshots.ready()
            embedded = self._snapshots.survey().embedded
            self._nested = find_nested(self._layout, git, embedded)
        return self._nested

    def _is_whole(self) -> bool:
        """Whether every object that HEAD needs can be read."""
        head = self._references.head().commit
        if head is None:
            return True
        answer = self._references.git.run("rev-list", "--objects", "--quiet", head, accept=(0, 1, 128))
        return answer.exit_code == 0
