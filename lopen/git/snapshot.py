"""Snapshots of the work tree as tree ids, made with scratch indexes; the user's own index is only copied.

The index `base` equals HEAD and caches file times, so that one `git status` finds the changes without reading
unchanged files. Changed files are added to a copy of it, and the copy is written as a tree: three processes, or
one if nothing changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from lopen.git.command import GitCommand
from lopen.git.errors import GitError, GitTimedOut
from lopen.git.git_files import copy_index
from lopen.git.ignores import require_few
from lopen.git.private import PrivateFolder
from lopen.git.screening import Leak, SecretScreen
from lopen.git.status import WorkTreeStatus, in_repositories, read_status
from lopen.git.trees import TreeEntry, file_at

# The base index is lopen's own, so what it remembers of folders without untracked files was seen by lopen's git.
_REMEMBERING: Mapping[str, str] = {"core.untrackedCache": "true"}


class Snapshots:
    """Takes snapshots of one work tree, relative to the commit of `set_head`."""

    def __init__(
        self, private: PrivateFolder, *, seed: Path | None, screen: SecretScreen | None = None
    ) -> None:
        self._private = private
        self._layout = private.layout
        self._seed = seed  # the user's index, whose cached file times avoid reading every file once
        self._head = self._layout.empty_tree  # a commit, or the empty tree
        self._base_of: str | None = None  # the head from which this process built `base`
        self._base_tree: str | None = None  # its tree id, if known
        self._screen = screen or SecretScreen(private.layout.root)
        self.latest = ""  # the tree of the latest snapshot
        self._latest_index = self.base  # holds that tree
        self.leaks: tuple[Leak, ...] = ()  # secrets that the latest snapshot would add to the history

    @property
    def base(self) -> Path:
        """The scratch index that equals HEAD."""
        return self._private.indexes / "index"

    def set_head(self, head: str | None) -> None:
        """Prepare the content door for work on top of the commit `head`."""
        self._private.prepare(head)
        self._head = head or self._layout.empty_tree

    def status(self, *, anew: bool = False) -> WorkTreeStatus:
        """Return the differences between HEAD and the work tree. An unreadable scratch index is rebuilt.

        With `anew` git looks into every folder. Else it remembers those that did not change, and with them which folders
        below are repositories: where some may be, it looks again.
        """
        git, root = self.head_index(), self._layout.root
        cached = git if anew else git.with_options(config=_REMEMBERING)
        try:
            found = read_status(cached, root)
        except GitTimedOut:
            raise  # a second attempt would take as long
        except GitError:
            self._rebuild(git, seeded=False)
            return read_status(cached, root)
        again = not anew and (found.embedded or in_repositories(root, found.changed))
        return read_status(git, root) if again else found

    def user_index_status(self) -> WorkTreeStatus:
        """Return the differences from HEAD according to the user's index, including changes that are only staged."""
        copy = self.base.with_name("index.user")
        if self._seed is not None and copy_index(self._seed, copy):
            git = self._private.git(copy)
            try:
                self._clear_flags(git)
                return read_status(git, self._layout.root)
            except GitError:  # a split index is not readable in another folder
                pass
        return self.status()

    def head_index(self) -> GitCommand:
        """Return git on the base index, which equals HEAD."""
        git = self._private.git(self.base)
        if self._base_of != self._head or not self.base.is_file():
            self._rebuild(git, seeded=True)
        return git

    def write_tree(self, exclude: Mapping[str, str], *, bounded: bool = True) -> tuple[str, WorkTreeStatus]:
        """Write the work tree; return its tree id and its differences from HEAD.

        `exclude`: path → blob id; a path with exactly this content stays as in HEAD. A tree with a new secret
        (`leaks`) is quarantined: it can be read, but not committed. Raises `TooManyFiles` if it is `bounded`.
        """
        found = self.status()
        excluded = self._matching(exclude, found.changed)
        paths = [path for path in found.changed if path not in excluded]
        if bounded:
            require_few(paths, lambda: frozenset(self.head_index().run("ls-files", "-z").fields()))
        self.leaks = self._screen.leaks(paths, self._committed)
        if not paths and self._base_tree is not None:
            self.latest, self._latest_index = self._base_tree, self.base
            return self._base_tree, found
        work = self.base.with_name("index.work")
        work.unlink(missing_ok=True)
        try:
            os.link(self.base, work)  # git replaces an index as a whole, so the base keeps its content
        except OSError:  # a file system without links
            copy_index(self.base, work)
        git = self._private.isolated(work) if self.leaks else self._private.git(work)
        hidden = _behind_links(self._layout.root, paths)
        _update(git, [path for path in paths if path in hidden], "--force-remove")
        _update(git, [path for path in paths if path not in hidden], "--add", "--remove", "--replace")
        tree = self.latest = git.run("write-tree").text
        self._latest_index = work
        if not paths:
            self._base_tree = tree
        return tree, found

    def copy_index(self, tree: str, target: Path) -> None:
        """Write an index of `tree` to `target`: a copy of the scratch index that holds it, or a new one.

        A new one too where files may be stored with other bytes than they have: the index holds their sizes.
        """
        held = self._latest_index != self.base or self._base_tree == tree
        known = tree == self.latest and held and not self._private.is_sparse and not self._private.converts()
        if not known or not copy_index(self._latest_index, target) or _may_convert(target.read_bytes()):
            target.unlink(missing_ok=True)
            self._private.reader(target).run("read-tree", tree)

    def tree_with(self, tree: str, files: Mapping[str, TreeEntry | None]) -> str:
        """Return `tree` with these `files` in place of its own, without those that are None; it is not committed."""
        index = self.base.with_name("index.with")
        git = self._private.isolated(index)
        git.run("read-tree", tree)
        gone = [path for path, entry in files.items() if entry is None]
        _update(git, gone, "--force-remove")
        lines = (os.fsencode(f"{e.mode} {e.blob}\t{p}") + b"\0" for p, e in files.items() if e is not None)
        git.run("update-index", "-z", "--replace", "--index-info", stdin=b"".join(lines))
        return git.run("write-tree").text

    def _committed(self, path: str) -> bytes | None:
        return file_at(self._private.git(), self._layout, self._head, path)

    def refreshed(self) -> Path:
        """Return the base index, with the current file times of the work tree."""
        # Exit code 1 means that files differ from HEAD, which is not a failure here.
        self.head_index().run("update-index", "-q", "--refresh", accept=(0, 1))
        return self.base

    def _rebuild(self, git: GitCommand, *, seeded: bool) -> None:
        """Make `base` equal HEAD, with the known file times.

        After the first time they come from `base` itself, because a command may have changed the user's index.
        In a sparse checkout only the user's index knows which files a new HEAD leaves out.
        """
        known = seeded and self._base_of is not None and not self._private.is_sparse
        self._base_of = self._base_tree = None
        self.base.with_name("index.lock").unlink(missing_ok=True)  # left by a terminated process of lopen
        if not known:
            self.base.unlink(missing_ok=True)
        if seeded and (self.base.is_file() or (self._seed is not None and copy_index(self._seed, self.base))):
            try:
                git.run("read-tree", "--reset", self._head)
                if not known:
                    self._clear_flags(git)
            except GitError:  # a split, damaged or newer index, which would only have saved time
                self.base.unlink(missing_ok=True)
        if not self.base.is_file():
            self._check_not_sparse()
            git.run("read-tree", "--reset", self._head)
        self._base_of = self._head

    def _clear_flags(self, git: GitCommand) -> None:
        """Clear flags that hide changes: assume-unchanged and, unless the checkout is sparse, skip-worktree."""
        entries = git.run("ls-files", "-v", "-z").fields()
        _update(git, [e[2:] for e in entries if e[0].islower()], "--no-assume-unchanged")
        if not self._private.is_sparse:
            _update(git, [e[2:] for e in entries if e[0] in "Ss"], "--no-skip-worktree")

    def _check_not_sparse(self) -> None:
        """Refuse a sparse checkout, whose missing files would look deleted without the user's index."""
        if self._private.is_sparse:
            raise GitError(
                "cannot read the index of this sparse checkout",
                hint="repair it: git sparse-checkout reapply",
            )

    def _matching(self, exclude: Mapping[str, str], changed: Iterable[str]) -> set[str]:
        """Return the paths of `changed` whose content is the blob in `exclude`."""
        candidates = [path for path in changed if path in exclude]
        blobs = self.blobs(candidates) if candidates else {}
        return {path for path in candidates if blobs.get(path) == exclude[path]}

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """Return path → blob id of the current content of files and links; other paths are left out."""
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


def _may_convert(index: bytes) -> bool:
    """Return True unless the index file certainly lists no `.gitattributes`; version 4 shortens names."""
    return b".gitattributes" in index or index[4:8] == b"\0\0\0\x04"


def _update(git: GitCommand, paths: Sequence[str], *how: str) -> None:
    if paths:
        git.run("update-index", "-z", *how, "--stdin", stdin=b"".join(os.fsencode(p) + b"\0" for p in paths))


def _behind_links(root: Path, paths: Iterable[str]) -> set[str]:
    """Return the paths with a symbolic link in place of a parent folder; git counts them as deleted."""

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
    """Quote a path for git's line-based input, which allows line breaks and leading quotes in it."""
    raw = os.fsencode(path)
    return b'"' + b"".join(b"\\%03o" % byte for byte in raw) + b'"'
