"""Snapshots of a folder without a repository, or with `git.enabled = false`: a private history without branches."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lopen.core.clock import Clock
from lopen.git import trees
from lopen.git.branch_clone import BranchClone
from lopen.git.checkout import NO_EXCLUSIONS, Checkout
from lopen.git.command import GitCommand, find_git
from lopen.git.commit_hooks import HookOutcome, HooksSnapshot, Runner
from lopen.git.commits import CommitInfo, write_commit
from lopen.git.errors import GitError
from lopen.git.layout import Layout, check_version
from lopen.git.private import CopiedConfig, PrivateFolder, read_head
from lopen.git.protection import GitFolderGuard, ProtectedState, Tampering
from lopen.git.refs import Head, References
from lopen.git.screening import KnownValues, SecretScreen
from lopen.git.snapshot import Snapshots
from lopen.git.stored_objects import move_untrue_aside, object_files
from lopen.store.temporary import TemporaryFolder

# Nobody sees a shadow's commits; they only keep the latest tree.
_IDENTITY = {f"GIT_{who}_{what}": "lopen" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class ShadowTree(Checkout):
    """A work tree based on its own latest snapshot, so that unchanged files are not read again."""

    def __init__(
        self,
        private: PrivateFolder,
        guard: GitFolderGuard,
        references: References | None = None,
        known: KnownValues = tuple,
    ) -> None:
        screen = SecretScreen(private.layout.root, known)
        snapshots = Snapshots(private, seed=None, screen=screen)
        super().__init__(private, snapshots, guard, base=lambda: read_head(private.path))
        self._references = references

    def snapshot(self, exclude: Mapping[str, str] = NO_EXCLUSIONS, *, bounded: bool = True) -> str:
        """Return the tree id of the folder's current content, without files that are now ignored or excluded.

        The first one takes any number of files: nothing says which of them are the person's.
        """
        self._remove_from_base(exclude)
        base = self._base()
        tree = super().snapshot(exclude, bounded=bounded and base is not None)
        if not self.leaks and (base is None or self.tree_of(base) != tree):
            self._set_base(tree)
        return tree

    def head(self) -> Head:
        return Head(None, None)

    def clone(self, folder: Path) -> BranchClone | None:
        """Return a repository with what a clone of the project's own would hold, and the tree at hand; None without one."""
        theirs = self._references
        if theirs is None or theirs.layout.object_format != self.layout.object_format:
            return None

        def reader() -> GitCommand:
            return self._private.reader(also=theirs.layout.objects)

        def changes(before: str, after: str) -> tuple[trees.TreeChange, ...]:
            return trees.changes(reader(), self.layout, before, after)

        return BranchClone(folder, theirs, reader, changes, self._snapshots.copy_index)

    def branch_tip(self, name: str) -> str | None:
        return None

    def reachable(self, commit: str, from_ref: str) -> bool:
        return False

    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        return []

    def commit_ids(self, within: str, *, since: str | None = None) -> frozenset[str]:
        return frozenset()

    def ignore_suggestion(self) -> tuple[str, ...]:
        return ()

    def hooks_snapshot(self) -> HooksSnapshot:
        return HooksSnapshot()

    def run_hooks(
        self,
        snapshot: HooksSnapshot,
        tree: str,
        message: str,
        runner: Runner,
        *,
        folder: Path,
    ) -> HookOutcome:
        return HookOutcome(True, "", tree, message)

    def protected_state(self) -> ProtectedState:
        return replace(super().protected_state(), shadow=object_files(self.layout))

    def restore_protected(self, before: ProtectedState) -> Tampering:
        found = super().restore_protected(before)
        if before.shadow is None:
            return found
        untrue = move_untrue_aside(self.layout, before.shadow, self._private.git())
        return replace(found, restored=(*found.restored, *untrue))

    def _remove_from_base(self, exclude: Mapping[str, str]) -> None:
        """Remove ignored and excluded files from the base, which would otherwise keep them in the next snapshot."""
        base = self._base()
        self._snapshots.set_head(base)
        git = self._snapshots.head_index()
        out = git.run("ls-files", "-z", "--cached", "--ignored", "--exclude-standard").fields()
        if base is not None and exclude:
            out += [
                path
                for path, entry in trees.entries(git, self.layout, base).items()
                if exclude.get(path) == entry.blob
            ]
        if out:
            listed = b"".join(os.fsencode(path) + b"\0" for path in out)
            git.run("update-index", "-z", "--force-remove", "--stdin", stdin=listed)
            self._set_base(git.run("write-tree").text)

    def _set_base(self, tree: str) -> None:
        """Make `tree` the base of the next snapshot."""
        git = self._private.git().with_options(_IDENTITY)
        self._private.prepare(write_commit(git, tree, (), "Snapshot\n", sign=False))


def shadow(
    root: Path,
    git_dir: Path,
    *,
    clock: Clock,
    guard: GitFolderGuard,
    references: References | None = None,
    known: KnownValues = tuple,
) -> ShadowTree:
    """Return the shadow of `root`, stored in `git_dir`, which can be deleted at any time.

    `guard` protects an existing repository that lopen does not use, `references` are its own.

    Raises:
        GitError: git is missing or too old.
    """
    top, folder = root.resolve(), git_dir.resolve()
    git = GitCommand(find_git(top), top, clock)
    check_version(git)
    (folder / "objects").mkdir(parents=True, exist_ok=True)
    layout = Layout(top, folder, folder, folder / "objects", "sha1")
    own = TemporaryFolder()  # scratch indexes stay outside `git_dir`, which commands may reach
    private = PrivateFolder(folder, layout, git, settings=CopiedConfig(), info=None, own=own.path)
    _check_history(private)
    tree = ShadowTree(private, guard, references, known)
    weakref.finalize(tree, own.remove)
    return tree


def _check_history(private: PrivateFolder) -> None:
    """Start with an empty history if a part of the cache was deleted."""
    head = read_head(private.path)
    private.prepare(head)
    if head is None:
        return
    try:
        private.git().run("rev-list", "--objects", "--quiet", head)
    except GitError:
        private.prepare(None)
