"""The repository of a module: its head and branch, lopen's commits, and reverting.

It combines the room's other modules over one layout and the two doors.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.core.clock import Clock
from lopen.git import branches, commit_hooks, commits, ignores
from lopen.git.branch_clone import BranchClone
from lopen.git.branches import Branches
from lopen.git.checkout import NO_EXCLUSIONS, Checkout
from lopen.git.command import GitCommand, find_git
from lopen.git.commit_hooks import HookOutcome, HooksSnapshot, Runner
from lopen.git.commits import CommitInfo, CommitWriter, refuse_leaks
from lopen.git.errors import GitError, NotARepository
from lopen.git.git_files import install_index, remove_stale_locks
from lopen.git.layout import Layout, check_version, discover
from lopen.git.private import CopiedConfig, PrivateFolder, read_copied_config
from lopen.git.protection import GitFolderGuard, RepositoryGuard
from lopen.git.refs import HEADS, Head, References
from lopen.git.screening import KnownValues, SecretScreen
from lopen.git.shadow import ShadowTree, shadow
from lopen.git.snapshot import Snapshots
from lopen.store.temporary import TemporaryFolder


@dataclass(frozen=True, slots=True)
class CheckoutOptions:
    """The options of one checkout."""

    sign: bool = False  # sign commits, as the user's own configuration says
    known: KnownValues = tuple  # returns the secret values that no commit may add
    own: str = ""  # the only shared reference to protect, if other processes move theirs


UNCOMMITTED = "Keep uncommitted work before a revert"
"""The subject of a backup's commit that holds uncommitted work."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What `Repository.backup` saved: its reference, the saved commit, and the branch's head at that time."""

    name: str
    saved: str
    head: str


class Repository(Checkout):
    """One checkout of a git repository whose top is the project's root."""

    def __init__(
        self, layout: Layout, git: GitCommand, settings: CopiedConfig, scratch: Path, terms: CheckoutOptions
    ) -> None:
        # The references door, with explicit folders that override a configured work tree
        door = {
            "GIT_DIR": str(layout.git_dir),
            "GIT_WORK_TREE": str(layout.root),
            "GIT_OPTIONAL_LOCKS": "0",
        }
        self.references = References(layout, git.with_options(door))
        private = PrivateFolder(scratch, layout, git, settings=settings, info=layout.common_dir / "info")
        screen = SecretScreen(layout.root, terms.known)
        snapshots = Snapshots(private, seed=layout.index, screen=screen)
        guard = RepositoryGuard(layout, self.references, snapshots, terms.own)
        super().__init__(private, snapshots, guard, base=lambda: self.head().commit)
        self.branches = Branches(layout, self.references)
        self.ignored_filters = settings.ignored_filters
        self._writer = CommitWriter(self.references.git, private, screen)
        self._terms = terms

    @staticmethod
    def open(
        root: Path,
        *,
        clock: Clock,
        sign: bool = False,
        scratch: Path | None = None,
        known: KnownValues = tuple,
    ) -> Repository:
        """Open the repository whose top is `root`; it may have no commit yet.

        `scratch` is a folder for private files that the model's commands cannot write; by default a temporary
        one that is removed with the object. `known` returns the secret values that no commit may add.

        Raises:
            NotARepository: there is none, it is bare or another user's, or `root` is not its top.
            GitError: git is missing or older than 2.36.
        """
        git = GitCommand(find_git(root), root.resolve(), clock)
        check_version(git)
        return Repository._made(git, discover(git), CheckoutOptions(sign, known), scratch)

    @staticmethod
    def shadow(root: Path, git_dir: Path, *, clock: Clock, known: KnownValues = tuple) -> ShadowTree:
        """Open a private history of snapshots instead of a repository; see `lopen.git.shadow`.

        An existing repository is still protected from commands, and a clone shows its history.
        """
        guard, references = GitFolderGuard(), None
        if (root / ".git").exists():
            with suppress(GitError):  # git cannot use the repository
                repository = Repository.open(root, clock=clock)
                guard, references = repository._guard, repository.references
        return shadow(root, git_dir, clock=clock, guard=guard, references=references, known=known)

    def linked(self, path: Path, branch: str) -> Repository:
        """Open the linked work tree at `path`, where only `branch` is protected.

        Other shared references are not restored after a command, because the user or another session may have
        moved them.

        Raises:
            NotARepository: `path` is not a work tree of this repository.
        """
        git = GitCommand(self.references.git.executable, path.resolve(), self.references.git.clock)
        layout = discover(git)
        if layout.common_dir.resolve() != self.layout.common_dir.resolve():
            raise NotARepository(f"{path} is not a work tree of {self.root}", hint="see: git worktree list")
        return Repository._made(git, layout, replace(self._terms, own=HEADS + branch))

    @staticmethod
    def _made(
        git: GitCommand, layout: Layout, terms: CheckoutOptions, scratch: Path | None = None
    ) -> Repository:
        settings = read_copied_config(git)
        if scratch is not None:
            return Repository(layout, git, settings, scratch, terms)
        folder = TemporaryFolder()
        repository = Repository(layout, git, settings, folder.path, terms)
        # The folder lives as long as anything that uses it, for example a shadow's guard.
        weakref.finalize(repository._private, folder.remove)
        return repository

    # state

    def head(self) -> Head:
        return self.references.head()

    def branch_tip(self, name: str) -> str | None:
        return self.references.tip(HEADS + name)

    def reachable(self, commit: str, from_ref: str) -> bool:
        return self.references.reachable(commit, from_ref)

    def identity(self) -> str:
        """Return the identity that lopen commits with, `Name <email>`.

        Raises:
            NoIdentity: none is configured.
        """
        known = self._writer.identity()
        return f"{known['GIT_COMMITTER_NAME']} <{known['GIT_COMMITTER_EMAIL']}>"

    def ignore_suggestion(self) -> tuple[str, ...]:
        self._snapshots.set_head(self.head().commit)
        return ignores.suggestions(ignores.exposed_caches(self._snapshots.head_index(), self.references.git))

    def clear_leftovers(self, branch: str) -> tuple[str, ...]:
        return *remove_stale_locks(self.layout, branch), *super().clear_leftovers(branch)

    def clone(self, folder: Path) -> BranchClone:
        known = self._reader, self._all_changes, self._snapshots.copy_index
        return BranchClone(folder, self.references, *known)

    # lopen's commits

    def commit(self, tree: str, parent: str | None, message: str, branch: str) -> str:
        """Commit a snapshot on `branch`, durably, update the user's index, and return the new id.

        After a crash between the two, `align_index` updates the index.

        Raises:
            RefMoved: the branch is no longer at `parent`; nothing was changed.
            NoIdentity: no identity is configured.
            GitError: HEAD is not on `branch`, or the commit would add a secret.
        """
        branches.check_head(self.head(), branch, parent)
        if tree == self._snapshots.latest:
            refuse_leaks(self.leaks, "committed")
        sha = self._writer.write(tree, parent, message, purpose="committed", sign=self._terms.sign)
        self.references.move(HEADS + branch, sha, parent, message.partition("\n")[0])
        self.align_index()
        return sha

    def merge_commit(self, tree: str, into: str, merges: str, message: str) -> str:
        """Write a merge commit that no reference has yet; raises the errors of `CommitWriter.write`."""
        sign = self._terms.sign
        return self._writer.write(tree, into, message, purpose="committed", sign=sign, merges=merges)

    def align_index(self) -> None:
        """Make the user's index equal HEAD, so that `git status` shows only real differences."""
        self._snapshots.set_head(self.head().commit)
        self._guard.head_moved()
        install_index(self._snapshots.refreshed(), self.layout.index, self.references.git.clock)

    def find_commit(
        self, session_id: str, task_id: str, *, within: str = "HEAD", since: str | None = None
    ) -> CommitInfo | None:
        """Return the newest commit with these trailers in the history of `within` after `since`, or None."""
        found = [c for c in self.session_commits(session_id, within=within, since=since) if c.task == task_id]
        return found[-1] if found else None

    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        start = self.references.resolve(within)
        found = commits.walk(self.references.git, start, since=since) if start else []
        return [commit for commit in found if session_id in (None, commit.session)]

    def commit_ids(self, within: str, *, since: str | None = None) -> frozenset[str]:
        start = self.references.resolve(within)
        return commits.ids(self.references.git, start, since=since) if start else frozenset()

    # reverting

    def backup(self, session_id: str, exclude: Mapping[str, str] = NO_EXCLUSIONS) -> str:
        """Save the head and uncommitted work under `refs/lopen/backup/<session>/<n>`; return that name.

        The reference's commit has the work tree as its tree and the head as its parent.
        """
        purpose, head = "stored in a backup", self.head().commit
        tree = self.snapshot(exclude, bounded=False)
        refuse_leaks(self.leaks, purpose)
        if head is not None and self.tree_of(head) == tree:
            saved = head
        else:
            saved = self._writer.write(tree, head, UNCOMMITTED + "\n", purpose=purpose)
        name = self.references.next_backup_name(session_id)
        self.references.move(name, saved, None, "backup before a revert")
        return name

    def latest_backup(self, session_id: str) -> Backup | None:
        """Return the session's newest backup, or None if it has none."""
        name = self.references.latest_backup_name(session_id)
        kept = self.references.tip(name) if name else None
        if name is None or kept is None:
            return None
        subject = self.references.git.run("log", "-1", "--format=%s", kept).text
        return Backup(name, kept, self.references.tip(f"{kept}^") or kept if subject == UNCOMMITTED else kept)

    def reset_to(self, commit: str, exclude: Mapping[str, str] = NO_EXCLUSIONS) -> None:
        """Reset branch, index and work tree to `commit`: uncommitted work is lost, so call `backup` first.

        Ignored and excluded files do not change.

        Raises:
            GitError: the commit does not exist, or an operation of git is in progress.
        """
        if operation := branches.unfinished_operation(self.layout):
            raise GitError(f"a {operation} is in progress", hint=f"abort it first: git {operation} --abort")
        head = self.head().commit
        tree = self.tree_of(commit)
        now = self.snapshot(exclude, bounded=False)
        # Files first: if one is not writable, the branch is unchanged and the reset can be repeated.
        self.restore(tree, [change.path for change in self.changes(now, tree)])
        self.references.move("HEAD", commit, head, f"revert to {commit[:12]}")
        self.align_index()

    # The repository's own hooks

    def hooks_snapshot(self) -> HooksSnapshot:
        return commit_hooks.read_hooks(self.layout, self.references.git)

    def run_hooks(
        self,
        snapshot: HooksSnapshot,
        tree: str,
        message: str,
        runner: Runner,
        *,
        folder: Path,
    ) -> HookOutcome:
        if not snapshot.hooks:
            return HookOutcome(True, "", tree, message)
        self._private.prepare(self.head().commit)
        run = commit_hooks.HookRun(self._private, folder, runner)
        passed, output, message_after = run.run(snapshot, tree, message)
        return HookOutcome(passed, output, self.snapshot(), message_after)


def require_repository(checkout: Checkout) -> Repository:
    """Return the checkout as a repository.

    Raises:
        GitError: it has none, or `git.enabled` is off.
    """
    if not isinstance(checkout, Repository):
        raise GitError(
            "this session commits its work, but git.enabled is off",
            hint="switch git.enabled on again, or start a new session: lopen run MODULE --new",
        )
    return checkout
