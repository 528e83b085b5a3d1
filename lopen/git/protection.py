"""Protection of git folders: after a command, compare the protected files and restore changed ones. Starts no process.

Contents are compared, not times, because the files are few and small and a command can set times. There are too
many objects for that: only their names are compared, to detect missing ones.
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

from lopen.core.stat_cache import NONE, Kept, is_folder, keep_below, listed, names_in
from lopen.git.git_files import git_is_running, replace_if_different
from lopen.git.layout import Layout
from lopen.git.nested import NO_NESTED, Nested, find_configured, find_nested
from lopen.git.refs import References, rewritten_alike
from lopen.git.snapshot import Snapshots
from lopen.git.stored_objects import ObjectFiles, move_untrue_aside, object_files, objects_missing

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
_REAL_FOLDERS = ("objects", "objects/info", "objects/pack")  # must stay folders
# Not compared in a linked work tree, because other work trees change them meanwhile
_SHARED_FILES = frozenset({"HEAD", "packed-refs", "refs", "reftable"})
_WORKTREE_FILES = ("HEAD", "gitdir", "commondir")
_PASSES = 3

_EXACT_NAMES = sys.platform.startswith("linux")  # other file systems may list HEAD as head


@dataclass(frozen=True, slots=True)
class ProtectedState:
    """The protected files of a repository at one moment, and the files of its objects."""

    files: Mapping[str, Kept]  # by absolute path
    objects: ObjectFiles | None = None
    shadow: ObjectFiles | None = None  # of lopen's private history in the project
    locks: frozenset[str] = NONE  # of git, by absolute path


@dataclass(frozen=True, slots=True)
class Tampering:
    """The changed paths that were restored. `objects_vanished` is True if objects that HEAD needs are missing."""

    restored: tuple[str, ...]
    objects_vanished: bool

    @property
    def found(self) -> bool:
        """True if anything was changed."""
        return bool(self.restored) or self.objects_vanished


NO_TAMPERING = Tampering((), False)
NO_STATE = ProtectedState({})


def read_state(layout: Layout, own: str = "", nested: Nested = NO_NESTED) -> ProtectedState:
    """Read HEAD, references, configuration, hooks, `info`, alternates and the files of unfinished operations.

    With `own` (a full reference name), other shared references and other work trees are left out. Of `nested`
    repositories only the files that determine which programs git starts are read.
    """
    return ProtectedState(_files(layout, own, nested), object_files(layout), locks=_locks(layout, own))


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
    """Return the paths to read, by folder, and the folders to read only if they are no longer folders."""
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


def restore_state(
    layout: Layout, before: ProtectedState, own: str = "", nested: Nested = NO_NESTED
) -> tuple[str, ...]:
    """Restore the protected files; return the changed paths, sorted, without references that say what they said.

    Several passes, because a link in place of a folder hides the files to compare behind it.
    """
    found: set[str] = set()
    alike: frozenset[str] = NONE
    for attempt in range(_PASSES):
        now, packed = _files(layout, own, nested), dict[str, Kept]()
        if attempt == 0 and now != before.files:
            keep_below(f"{layout.common_dir}/packed-refs", packed if own else {})
            alike = rewritten_alike(str(layout.common_dir), {**before.files, **packed}, now | packed)
        changed = _restore_once(before, now)
        if not changed:
            break
        found |= changed
    return tuple(sorted(found - alike))


def _restore_once(before: ProtectedState, now: Mapping[str, Kept]) -> set[str]:
    added = {path for path in now if path not in before.files}
    lost = {path for path, kept in before.files.items() if now.get(path) != kept}
    for path in sorted(added):  # a link before the paths that appear behind it
        Path(path).unlink(missing_ok=True)
    for path in lost:
        _write_back(Path(path), before.files[path])
    return added | lost


def _locks(layout: Layout, own: str) -> frozenset[str]:
    """Return the locks on files of the git folder; those of references count among the references."""
    folders = (layout.git_dir,) if own else (layout.git_dir, layout.common_dir)
    return frozenset(f"{f}/{name}" for f in folders for name in names_in(str(f)) if name.endswith(".lock"))


def remove_new_locks(layout: Layout, before: ProtectedState, own: str = "") -> tuple[str, ...]:
    """Remove the locks that a command left, unless a git process may hold one; return their paths."""
    found = sorted(_locks(layout, own) - before.locks)
    if not found or git_is_running((layout.root, layout.git_dir, layout.common_dir)):
        return ()
    for lock in found:
        _make_room(Path(lock))
        Path(lock).unlink(missing_ok=True)
    return tuple(found)


def _worktree_files(folder: str) -> Iterator[str]:
    for name in listed(folder):
        yield from (f"{folder}/{name}/{file}" for file in _WORKTREE_FILES)


def _write_back(path: Path, kept: Kept) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)  # a command may have made it unwritable
    _make_room(path)
    if stat.S_ISLNK(kept.mode):
        path.symlink_to(os.fsdecode(kept.content))
    elif stat.S_ISREG(kept.mode):
        replace_if_different(path, kept.content)
        path.chmod(stat.S_IMODE(kept.mode))


def _make_room(path: Path) -> None:
    """Remove `path` unless it is a regular file."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        elif not stat.S_ISREG(mode):
            path.unlink()


class GitFolderGuard:
    """The guard without a repository, which protects nothing; `RepositoryGuard` overrides it."""

    def state(self) -> ProtectedState:
        """Read HEAD, references, configuration and hooks. Starts a process only the first time."""
        return NO_STATE

    def restore(self, before: ProtectedState) -> Tampering:
        """Restore the protected files that a command changed, and check for missing objects."""
        return NO_TAMPERING

    def read_only_paths(self) -> tuple[str, ...]:
        """Return the absolute paths besides `.git` that a sandbox must keep read-only.

        These are git folders elsewhere in the project, the `.git` of nested repositories, `settings` and `configured`.
        """
        return ()

    def has_several_git_folders(self) -> bool:
        """Return True if there is more to protect than one `.git` folder at the top."""
        return False

    def settings(self) -> tuple[str, ...]:
        """Return versioned `.claude/settings*` and `.lopen` in subfolders, relative to the root."""
        return ()

    def configured(self) -> tuple[str, ...]:
        """Return hooks and configuration of git in the work tree, existing or not, relative to the root."""
        return ()

    def head_moved(self) -> None:
        """Forget the nested repositories and settings, because HEAD moved."""


class RepositoryGuard(GitFolderGuard):
    """The guard of one repository. `own`, if given, is the only shared reference that it protects."""

    def __init__(self, layout: Layout, references: References, snapshots: Snapshots, own: str = "") -> None:
        self._layout = layout
        self._references = references
        self._snapshots = snapshots
        self._own = own
        self._found_nested: Nested | None = None  # None until the first search

    def head_moved(self) -> None:
        self._found_nested = None

    def state(self) -> ProtectedState:
        return read_state(self._layout, self._own, self._nested())

    def restore(self, before: ProtectedState) -> Tampering:
        restored = restore_state(self._layout, before, self._own, self._nested())
        locks = remove_new_locks(self._layout, before, self._own)
        if before.objects is None:
            return Tampering((*restored, *locks), False)
        untrue = move_untrue_aside(self._layout, before.objects, self._references.git)
        vanished = objects_missing(self._layout, before.objects) and not self._is_complete()
        return Tampering((*restored, *locks, *untrue), vanished)

    def read_only_paths(self) -> tuple[str, ...]:
        root = f"{self._layout.root}/"
        folders = map(str, (self._layout.git_dir, self._layout.common_dir))
        elsewhere = [folder for folder in folders if folder.startswith(root)]
        nested = self._nested()
        places = (*elsewhere, *nested.present, *(root + path for path in nested.settings))
        return tuple(p for p in dict.fromkeys(places) if not f"{p}/".startswith(f"{root}.git/"))

    def has_several_git_folders(self) -> bool:
        return bool(self._nested().starts) or self._layout.git_dir != self._layout.root / ".git"

    def settings(self) -> tuple[str, ...]:
        return self._nested().settings

    def configured(self) -> tuple[str, ...]:
        return self._nested().configured

    def _nested(self) -> Nested:
        """Return the nested repositories and settings, found once per HEAD."""
        if self._found_nested is None:
            self._snapshots.set_head(self._references.head().commit)
            git = self._snapshots.head_index()
            embedded = self._snapshots.status(anew=True).embedded
            configured = find_configured(self._layout, self._references.git)
            nested = find_nested(self._layout, git, embedded)
            self._found_nested = nested.with_configured(str(self._layout.root), configured)
        return self._found_nested

    def _is_complete(self) -> bool:
        """Return True if every object that HEAD needs is readable."""
        head = self._references.head().commit
        if head is None:
            return True
        answer = self._references.git.run("rev-list", "--objects", "--quiet", head, accept=(0, 1, 128))
        return answer.exit_code == 0
