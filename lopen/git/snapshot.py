"""The work tree as a tree id, made through scratch indexes; the user's own index is only copied.

`base` is an index that holds what HEAD holds, with git's cache of file times, so that one `git status` finds the
differences without reading unchanged files. What differs is added to a copy of it, and the copy is written as a
tree: three processes, one where nothing differs.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.errors import GitError, GitTimedOut
from lopen.git.git_files import copy_index
from lopen.git.ignores import in_build_folder, is_build_folder, is_internal
from lopen.git.private import PrivateFolder
from lopen.git.screening import Leak, Screen
from lopen.git.trees import file_at


class Snapshots:
    """Takes snapshots of one work tree. `follow` says which commit counts as HEAD."""

    def __init__(self, private: PrivateFolder, *, seed: Path | None, screen: Screen | None = None) -> None:
        self._private = private
        self._layout = private.layout
        self._seed = seed  # the user's index, whose cache of file times saves reading every file once
        self._wanted = self._layout.empty_tree  # what HEAD holds: a commit, or the empty tree
        self._base_of: str | None = None  # what `base` was built from in this process
        self._base_tree: str | None = None  # its tree id, once it was asked for
        self._screen = screen or Screen(private.layout.root)
        self.latest = ""  # the tree of the latest snapshot
        self.leaks: tuple[Leak, ...] = ()  # secrets that the latest snapshot would add to the history

    @property
    def base(self) -> Path:
        """The scratch index that holds what HEAD holds."""
        return self._private.indexes / "index"

    def follow(self, head: str | None) -> None:
        """Prepare the content door for work on top of the commit `head`."""
        self._private.prepare(head)
        self._wanted = head or self._layout.empty_tree

    def survey(self) -> Survey:
        """What differs between HEAD and the work tree. A scratch index that cannot be read is made anew."""
        git = self.ready()
        try:
            return survey(git, self._layout.root)
        except GitTimedOut:
            raise  # it would only take as long again
        except GitError:
            self._rebuild(git, seeded=False)
            return survey(git, self._layout.root)

    def survey_users_index(self) -> Survey:
        """What differs from HEAD, through a copy of the user's index, so that what is only staged is seen too."""
        copy = self.base.with_name("index.user")
        if self._seed is not None and copy_index(self._seed, copy):
            git = self._private.git(copy)
            try:
                self._clear_flags(git)
                return survey(git, self._layout.root)
            except GitError:  # a split index cannot be read from elsewhere
                pass
        return self.survey()

    def ready(self) -> GitCommand:
        """git on the base index, which holds what HEAD holds."""
        git = self._private.git(self.base)
        if self._base_of != self._wanted or not self.base.is_file():
            self._rebuild(git, seeded=True)
        return git

    def tree(self, exclude: Mapping[str, str]) -> tuple[str, Survey]:
        """The tree id of the work tree, and what it differs from HEAD in.

        `exclude`: path → blob id; a path is left as HEAD has it while its content is still that blob. A tree
        that would add a secret (`leaks`) lies in quarantine: it can be looked at, and not be committed.
        """
        found = self.survey()
        unchanged = self._still(exclude, found.changed)
        paths = [path for path in found.changed if path not in unchanged]
        self.leaks = self._screen.leaks(paths, self._committed)
        if not paths and self._base_tree is not None:
            self.latest = self._base_tree
            return self._base_tree, found
        work = self.base.with_name("index.work")
        copy_index(self.base, work)
        git = self._private.isolated(work) if self.leaks else self._private.git(work)
        hidden = _behind_links(self._layout.root, paths)
        _update(git, [path for path in paths if path in hidden], "--force-remove")
        _update(git, [path for path in paths if path not in hidden], "--add", "--remove", "--replace")
        tree = self.latest = git.run("write-tree").text
        if not paths:
            self._base_tree = tree
        return tree, found

    def _committed(self, path: str) -> bytes | None:
        return file_at(self._private.git(), self._wanted, path)

    def refreshed(self) -> Path:
        """The base index, with the file times of the work tree as it is now."""
        # Exit code 1 says that files differ from HEAD, which is no failure here.
        self.ready().run("update-index", "-q", "--refresh", accept=(0, 1))
        return self.base

    def _rebuild(self, git: GitCommand, *, seeded: bool) -> None:
        """Make `base` hold what HEAD holds, keeping what is known about file times.

        Once there is one, `base` itself knows: a command may have reached the user's index since. Of a sparse
        checkout only the user's tells what a new HEAD leaves out.
        """
        known = seeded and self._base_of is not None and not self._private.is_sparse
        self._base_of = self._base_tree = None
        self.base.with_name("index.lock").unlink(missing_ok=True)  # ours alone; its process was ended
        if not known:
            self.base.unlink(missing_ok=True)
        if seeded and (self.base.is_file() or (self._seed is not None and copy_index(self._seed, self.base))):
            try:
                git.run("read-tree", "--reset", self._wanted)
                if not known:
                    self._clear_flags(git)
            except GitError:  # a split, damaged or newer index: only the time it saves is lost
                self.base.unlink(missing_ok=True)
        if not self.base.is_file():
            self._check_not_sparse()
            git.run("read-tree", "--reset", self._wanted)
        self._base_of = self._wanted

    def _clear_flags(self, git: GitCommand) -> None:
        """Take from an index the marks that hide changes: assume-unchanged, and skip-worktree where nothing is sparse."""
        entries = git.run("ls-files", "-v", "-z").fields()
        _update(git, [e[2:] for e in entries if e[0].islower()], "--no-assume-unchanged")
        if not self._private.is_sparse:
            _update(git, [e[2:] for e in entries if e[0] in "Ss"], "--no-skip-worktree")

    def _check_not_sparse(self) -> None:
        """Only the user's index knows which files a sparse checkout leaves out; without it they look deleted."""
        if self._private.is_sparse:
            raise GitError(
                "the index of this sparse checkout cannot be read",
                hint="repair it: git sparse-checkout reapply",
            )

    def _still(self, exclude: Mapping[str, str], changed: Iterable[str]) -> set[str]:
        """Those of `changed` whose content still is the blob that `exclude` names."""
        candidates = [path for path in changed if path in exclude]
        blobs = self.blobs(candidates) if candidates else {}
        return {path for path in candidates if blobs.get(path) == exclude[path]}

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """path → the blob id that the file or link would have in a snapshot; what is neither is left out."""
        files: list[str] = []
        found: dict[str, str] = {}
        for path in paths:
            mode = _mode(self._layout.root / path)
            if stat.S_ISREG(mode):
                files.append(path)
            elif stat.S_ISLNK(mode):
                found[path] = self._link_blob(path)
        if files:
            listed = b"".join(_quoted(path) + b"\n" for path in files)
            ids = self._private.git().run("hash-object", "--stdin-paths", stdin=listed).text.split("\n")
            found |= dict(zip(files, ids, strict=True))
        return found

    def _link_blob(self, path: str) -> str:
        target = os.readlink(os.fsencode(self._layout.root / path))
        digest = hashlib.new(self._layout.object_format, usedforsecurity=False)
        digest.update(b"blob %d\0" % len(target) + target)
        return digest.hexdigest()


def _update(git: GitCommand, paths: Sequence[str], *how: str) -> None:
    if paths:
        git.run("update-index", "-z", *how, "--stdin", stdin=b"".join(os.fsencode(p) + b"\0" for p in paths))


def _behind_links(root: Path, paths: Iterable[str]) -> set[str]:
    """Those of `paths` above which a symbolic link now stands where a folder was: they are gone, whatever it shows."""

    @cache
    def linked(folder: str) -> bool:
        parent = folder.rpartition("/")[0]
        return stat.S_ISLNK(_mode(root / folder)) or (parent != "" and linked(parent))

    return {path for path in paths if "/" in path and linked(path.rpartition("/")[0])}


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _quoted(path: str) -> bytes:
    """A path as git's line-based input wants it where it contains a line break or begins with a quote."""
    raw = os.fsencode(path)
    return b'"' + b"".join(b"\\%03o" % byte for byte in raw) + b'"'


@dataclass(frozen=True, slots=True)
class Survey:
    """Paths that differ from HEAD, whether staged or not, sorted.

    Left out: what git ignores, lopen's own state, well-known caches that are not tracked. A folder inside the
    work tree that is a repository of its own is in `embedded` alone: its files belong to that repository.
    """

    changed: tuple[str, ...]
    embedded: tuple[str, ...]  # folders, without a slash at the end


def survey(git: GitCommand, root: Path) -> Survey:
    """One look at the work tree, through the content door, against its index and HEAD."""
    answer = git.run(
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignored=no",
        "--ignore-submodules=dirty",  # looking inside would run git under the submodule's own configuration
        "--no-renames",
        "--no-ahead-behind",
    )
    is_cache = cache(lambda folder: is_build_folder(root / folder))
    changed: set[str] = set()
    embedded: set[str] = set()
    for path, tracked in _entries(answer.fields()):
        if is_internal(path) or (not tracked and in_build_folder(path, is_cache)):
            continue
        if path.endswith("/"):
            embedded.add(path.rstrip("/"))
        else:
            changed.add(path)
    return Survey(tuple(sorted(changed)), tuple(sorted(embedded)))


# How many blanks stand before the path in a line of `status --porcelain=v2`, by the line's first letter.
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10}


def _entries(fields: list[str]) -> Iterator[tuple[str, bool]]:
    """(path, tracked) of every line; a folder's path ends in `/`."""
    for field in fields:
        if field.startswith("? "):
            yield field[2:], False
        elif before := _FIELDS_BEFORE_PATH.get(field[:1]):
            yield field.split(" ", before)[before], True
