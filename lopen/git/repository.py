"""A repository whose top is a checkout: the person's own, and lopen's clone of it.

In the person's repository lopen reads, fetches and moves references. Content filters that only this repository configures
are switched off for every command, so that looking at it starts no program of it. Work, snapshots and commits are made in
lopen's clone (`lopen.git.clones`).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from lopen.core.clock import Clock
from lopen.git import commits, ignores
from lopen.git.command import GitCommand, find_git
from lopen.git.commits import CommitInfo, refuse_leaks
from lopen.git.configuration import Setting, foreign_filters, read_settings, switched_off
from lopen.git.ignores import HALF_WRITTEN, ignored_paths, is_internal
from lopen.git.layout import Layout, check_version, discover
from lopen.git.refs import HEADS, Head, References, check_head
from lopen.git.screening import KnownValues, Leak, find_leaks
from lopen.git.trees import Objects, TreeEntry, within
from lopen.git.work_tree import WorkTree, read_status
from lopen.store.temporary import TemporaryFolder

NO_EXCLUSIONS: Mapping[str, str] = {}
_MOST_NAMED = 100_000  # characters of paths in a command: Linux takes 2 MB, with the environment
_CONTENT_CONFIG: Mapping[str, str] = {
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.safecrlf": "false",
    "core.fsync": "committed",  # objects of a later commit must survive a power cut
    "status.showUntrackedFiles": "all",
}


@dataclass(frozen=True, slots=True)
class CheckoutOptions:
    """The options of one checkout."""

    sign: bool = False  # sign commits, as the user's own configuration says
    known: KnownValues = tuple  # returns the secret values that no commit may add


UNCOMMITTED = "Keep uncommitted work before a revert"
"""The subject of a backup's commit that holds uncommitted work."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The result of `Repository.backup`: its reference, the saved commit, and the branch's head at that time."""

    name: str
    saved: str
    head: str


class Repository(Objects):
    """One repository with its checkout. `identity_from` is where git finds the person's identity."""

    def __init__(
        self,
        layout: Layout,
        git: GitCommand,
        scratch: Path,
        options: CheckoutOptions,
        identity_from: GitCommand | None = None,
    ) -> None:
        own = {
            "GIT_DIR": str(layout.git_dir),
            "GIT_WORK_TREE": str(layout.root),
            "GIT_OPTIONAL_LOCKS": "0",
        }
        self.root = layout.root
        self.layout = layout
        super().__init__(git.with_options(own, config=_CONTENT_CONFIG))
        self.references = References(layout, self.git)
        self.settings: Sequence[Setting] = ()  # of git, as they were when the person's repository was opened
        self.ignored_filters: tuple[str, ...] = ()  # content filters that only the repository configures
        self.changed_protected_paths: tuple[str, ...] = ()  # by the latest snapshot, see `is_protected_path`
        self._options = options
        self._files = WorkTree(layout, self, scratch, lambda: self.head().commit)
        self._identity_from = identity_from or self.git
        self._identity: Mapping[str, str] = {}
        self._listing = Lock()  # read-only tools of one turn may list files in parallel

    @staticmethod
    def open(root: Path, *, clock: Clock, sign: bool = False, known: KnownValues = tuple) -> Repository:
        """Open the person's repository whose top is `root`; it may have no commit yet.

        `known` returns the secret values that no commit may add.

        Raises:
            NotARepository: there is none, it is bare or another user's, or `root` is not its top.
            GitError: git is missing or older than 2.36.
        """
        git = GitCommand(find_git(root), root.resolve(), clock)
        check_version(git)
        layout = discover(git)
        settings = read_settings(git)
        filters = foreign_filters(settings)
        git = git.with_options(config=switched_off(filters))
        folder = TemporaryFolder()
        repository = Repository(layout, git, folder.path, CheckoutOptions(sign, known))
        repository.settings, repository.ignored_filters = settings, filters
        weakref.finalize(repository, folder.remove)
        return repository

    @staticmethod
    def over(
        layout: Layout, git: GitCommand, options: CheckoutOptions, person: Repository, *, alone: bool = True
    ) -> Repository:
        """Open lopen's clone of the repository of `person`, whose identity its commits have.

        Not `alone`: another process may use it too.
        """
        folder = None if alone else TemporaryFolder()
        scratch = folder.path if folder else layout.git_dir / "lopen"
        clone = Repository(layout, git, scratch, options, person.git)
        clone.ignored_filters = person.ignored_filters
        if folder:
            weakref.finalize(clone, folder.remove)
        return clone

    # state

    def head(self) -> Head:
        """Return HEAD: the commit (None before the first) and the branch (None if detached)."""
        return self.references.head()

    def branch_tip(self, name: str) -> str | None:
        """Return the commit of a branch, or None if it does not exist."""
        return self.references.tip(HEADS + name)

    def reachable(self, commit: str, from_ref: str) -> bool:
        """Return True if `commit` is in the history of `from_ref`: a branch name, `HEAD`, `refs/…` or an id."""
        return self.references.reachable(commit, from_ref)

    def identity(self) -> str:
        """Return the identity that lopen commits with, `Name <email>`.

        Raises:
            NoIdentity: none is configured.
        """
        known = self._known_identity()
        return f"{known['GIT_COMMITTER_NAME']} <{known['GIT_COMMITTER_EMAIL']}>"

    def _known_identity(self) -> Mapping[str, str]:
        if not self._identity:
            self._identity = commits.identity(self._identity_from)
        return self._identity

    # files

    def snapshot(self, exclude: Mapping[str, str] = NO_EXCLUSIONS) -> str:
        """Return the tree id of the current work tree; its objects are durable.

        It has all files that git does not ignore, without lopen's state, untracked well-known caches and `embedded`
        repositories. A path in `exclude` (path → blob id) stays as in HEAD while its content is that blob.
        """
        tree, status = self._files.snapshot(exclude)
        self.changed_protected_paths = tuple(filter(ignores.is_protected_path, status.changed))
        return tree

    @property
    def embedded(self) -> tuple[str, ...]:
        """Folders that the latest snapshot left out: repositories of their own, of which git would commit a pointer."""
        return self._files.embedded

    def leaks(self, tree: str) -> tuple[Leak, ...]:
        """Return the secrets that `tree` would add to the history. It can be compared but not committed."""
        return find_leaks(self, self.head().commit or self.layout.empty_tree, tree, self._options.known())

    def files(self) -> list[str]:
        """Return every file that git does not ignore, tracked or not, without lopen's own state."""
        with self._listing:
            git = self._files.head_index()
            found = git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard").fields()
        return sorted({path for path in found if not is_internal(path) and not path.endswith("/")})

    def dirty(self, allow: Callable[[str], bool]) -> tuple[str, ...]:
        """Return uncommitted paths, staged or not, except ignored ones and ones that `allow` accepts, sorted.

        A folder that is a repository of its own counts as one path.
        """
        found = read_status(self.git, self.root)
        return tuple(
            path
            for path in sorted((*found.changed, *found.embedded))
            if not allow(path) and not ignores.is_cache(path)
        )

    def untracked(self) -> frozenset[str]:
        """Return the uncommitted paths that git neither tracks nor ignores."""
        return read_status(self.git, self.root).untracked

    def ignored(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the `paths` that git ignores and does not track; snapshots and commits do not contain them."""
        # check-ignore does not take literal paths; a leading `./` prevents any other reading of a name.
        listed = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        with self._listing:
            git = self._files.head_index().with_options({"GIT_LITERAL_PATHSPECS": "0"})
            found = git.run("check-ignore", "-z", "--stdin", stdin=listed, accept=(0, 1)).fields()
        return tuple(path.removeprefix("./") for path in found)

    def left_out(self) -> tuple[str, ...]:
        """Return what lies in the work tree and enters no commit: ignored files (a folder counts once), repositories."""
        ignored = ignored_paths(self._files.head_index())
        return tuple(sorted({*ignored, *(f"{path}/" for path in self.embedded)}))

    def tree_with(self, tree: str, files: Mapping[str, TreeEntry | None]) -> str:
        """Return the id of `tree` with these `files` in place of its own."""
        return self._files.tree_with(tree, files)

    def blobs(self, paths: Iterable[str]) -> dict[str, str]:
        """Return path → blob id of the current content, for `exclude`; only files and links are included."""
        return self._files.blobs(paths)

    def restore(self, tree: str, paths: Iterable[str]) -> None:
        """Restore files from `tree`, deleting files that it does not contain; never through a symbolic link."""
        self._files.restore(tree, paths)

    def clear_leftovers(self, branch: str) -> tuple[str, ...]:
        """Remove the remains of a killed run: unfinished files and the lock on `branch`; return their paths."""
        locks = self.references.remove_lock(branch)
        found = self.git.run("ls-files", "-z", "--others", "--ignored", "-x", HALF_WRITTEN).fields()
        for path in found:
            (self.root / path).unlink(missing_ok=True)
        return *locks, *found

    # objects

    def diff(
        self,
        before: str,
        after: str,
        *,
        paths: Sequence[str] | None = None,
        max_chars: int | None = None,
        as_text: bool = False,
    ) -> str:
        """Return the unified diff of two trees, of `paths` if given, cut at `max_chars`; `as_text`: no file is binary."""
        if paths is not None and sum(map(len, paths)) > _MOST_NAMED:
            before, after = self._with_only(frozenset(paths), before, after)
            paths = None
        return super().diff(before, after, paths=paths, max_chars=max_chars, as_text=as_text)

    def _with_only(self, paths: Set[str], before: str, after: str) -> tuple[str, str]:
        """Return both trees without the files that differ and are not in `paths` or below them."""
        changed = self.changes(before, after)
        named = {c.path for c in within(changed, paths)}
        others = {c.path: None for c in changed if c.path not in named}
        return self.tree_with(before, others), self.tree_with(after, others)

    # lopen's commits

    def commit(self, tree: str, parent: str | None, message: str, branch: str) -> str:
        """Commit a snapshot on `branch`, durably, update the index, and return the new id.

        After a crash between the two, `align_index` updates the index.

        Raises:
            RefMoved: the branch is no longer at `parent`; nothing was changed.
            NoIdentity: no identity is configured.
            GitError: HEAD is not on `branch`, or the commit would add a secret.
        """
        check_head(self.head(), branch, parent)
        sha = self._write_commit(tree, (parent, None), message, purpose="committed", sign=self._options.sign)
        self.references.move(HEADS + branch, sha, parent, message.partition("\n")[0])
        self.align_index()
        self._known(("tree", sha), lambda: tree)
        return sha

    def merge_commit(self, tree: str, into: str, merges: str, message: str) -> str:
        """Write a merge commit that no reference has yet; raises the errors of `commit`."""
        return self._write_commit(tree, (into, merges), message, purpose="committed", sign=self._options.sign)

    def commit_of(self, tree: str, parent: str | None, message: str) -> str:
        """Write a commit of a tree for a second checkout; no branch gets it."""
        git = self.git.with_options(self._known_identity(), config={"core.fsync": "none"})
        return commits.write_commit(git, tree, (parent,), message, sign=False)

    def _write_commit(
        self, tree: str, parents: Sequence[str | None], message: str, *, purpose: str, sign: bool = False
    ) -> str:
        """Write a commit, durable on return. `purpose` completes "it would be …" in the error about a secret."""
        before = parents[0] or self.layout.empty_tree
        refuse_leaks(find_leaks(self, before, tree, self._options.known()), purpose)
        return commits.write_commit(
            self.git.with_options(self._known_identity()), tree, parents, message, sign=sign
        )

    def align_index(self) -> None:
        """Make the checkout's index equal HEAD, so that `git status` shows only real differences."""
        durable = self.git.with_options(config={"core.fsync": "committed,index"})
        durable.run("read-tree", "--reset", self.head().commit or self.layout.empty_tree)
        # Exit code 1 means that files differ from HEAD, which is not a failure here.
        durable.run("update-index", "-q", "--refresh", accept=(0, 1))

    def find_commit(
        self, session_id: str, task_id: str, *, within: str = "HEAD", since: str | None = None
    ) -> CommitInfo | None:
        """Return the newest commit with these trailers in the history of `within` after `since`, or None."""
        found = [c for c in self.session_commits(session_id, within=within, since=since) if c.task == task_id]
        return found[-1] if found else None

    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        """Return lopen's commits (of one session if given) in the history of `within` after `since`, oldest first."""
        start = self.references.resolve(within)
        found = commits.walk(self.git, start, since=since) if start else []
        return [commit for commit in found if session_id in (None, commit.session)]

    def commit_ids(self, within: str, *, since: str | None = None) -> frozenset[str]:
        """Return the ids of the commits in the history of `within` after `since`."""
        start = self.references.resolve(within)
        return commits.ids(self.git, start, since=since) if start else frozenset()

    # reverting

    def backup(self, session_id: str) -> str:
        """Save the head and uncommitted work under `refs/lopen/backup/<session>/<n>`; return that name.

        The reference's commit has the work tree as its tree and the head as its parent.
        """
        purpose, head = "stored in a backup", self.head().commit
        tree = self.snapshot()
        if head is not None and self.tree_of(head) == tree:
            saved = head
        else:
            saved = self._write_commit(tree, (head,), UNCOMMITTED + "\n", purpose=purpose)
        name = self.references.next_backup_name(session_id)
        self.references.move(name, saved, None, "backup before a revert")
        return name

    def read_backup(self, name: str) -> Backup | None:
        """Return what `backup` saved under this name, None if it is gone."""
        kept = self.references.tip(name)
        if kept is None:
            return None
        subject = self.git.run("log", "-1", "--format=%s", kept).text
        return Backup(name, kept, self.references.tip(f"{kept}^") or kept if subject == UNCOMMITTED else kept)

    def reset_to(self, commit: str) -> None:
        """Reset branch, index and work tree to `commit`: uncommitted work is lost, so call `backup` first.

        Ignored files do not change.

        Raises:
            GitError: the commit does not exist.
        """
        head = self.head().commit
        tree = self.tree_of(commit)
        # Files first: if one is not writable, the branch is unchanged and the reset can be repeated.
        self._files.reset(tree)
        self.references.move("HEAD", commit, head, f"revert to {commit[:12]}")
        self.align_index()

    def carry_to(self, commit: str) -> None:
        """Move HEAD's branch and the files to `commit`; uncommitted work goes along where it touches other files.

        Raises:
            GitError: uncommitted work stands against it; nothing was changed.
        """
        before = self.head().commit
        self.align_index()
        self.git.run("read-tree", "-m", "-u", before or self.layout.empty_tree, commit)
        self.references.move("HEAD", commit, before, f"go on from {commit[:12]}")
        self.align_index()
