"""The repository a module is built in: its head, its branch, lopen's commits, and going back.

The room's other files do the work; here they are put together over one layout and the two doors.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.base.clock import Clock
from lopen.git import branches, commit_hooks, commits, ignores, trees
from lopen.git.branches import Branches
from lopen.git.checkout import NO_EXCLUSIONS, Checkout
from lopen.git.command import GitCommand, find_git
from lopen.git.commit_hooks import HookOutcome, HooksSnapshot, Runner
from lopen.git.commits import CommitInfo, CommitWriter, refuse_leaks
from lopen.git.errors import GitError, NotARepository
from lopen.git.git_files import install_index, remove_stale_locks
from lopen.git.layout import Layout, check_version, discover
from lopen.git.private import Carried, PrivateFolder, carried
from lopen.git.protection import GitFolderGuard, RepositoryGuard
from lopen.git.refs import HEADS, Head, References
from lopen.git.screening import Screen, Values
from lopen.git.shadow import ShadowTree, shadow
from lopen.git.snapshot import Snapshots
from lopen.storage.temporary import TemporaryFolder


@dataclass(frozen=True, slots=True)
class Terms:
    """How one checkout is worked in."""

    sign: bool = False  # commits are signed, as the person's own configuration says
    known: Values = tuple  # values that no commit may add
    own: str = ""  # the only shared reference that is guarded, where others move theirs meanwhile


class Repository(Checkout):
    """One checkout of a git repository whose top is the project's root."""

    def __init__(
        self, layout: Layout, git: GitCommand, settings: Carried, scratch: Path, terms: Terms
    ) -> None:
        # The references door. Explicit folders, so that no configured work tree leads elsewhere.
        door = {
            "GIT_DIR": str(layout.git_dir),
            "GIT_WORK_TREE": str(layout.root),
            "GIT_OPTIONAL_LOCKS": "0",
        }
        self.references = References(layout, git.having(door))
        private = PrivateFolder(scratch, layout, git, settings=settings, info=layout.common_dir / "info")
        screen = Screen(layout.root, terms.known)
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
        known: Values = tuple,
    ) -> Repository:
        """The repository whose top is `root`. One without commits is fine: `head().commit` is None then.

        `scratch` is a folder for private files that no command of a model may write to; without it one outside
        the project is made, and removed with the object. `known` are values that no commit may add.

        Raises:
            NotARepository: no repository, a bare one, somebody else's, or `root` is not its top.
            GitError: git is missing or older than 2.36.
        """
        git = GitCommand(find_git(root), root.resolve(), clock)
        check_version(git)
        return Repository._made(git, discover(git), Terms(sign, known), scratch)

    @staticmethod
    def shadow(root: Path, git_dir: Path, *, clock: Clock, known: Values = tuple) -> ShadowTree:
        """A private history of snapshots for a folder without a repository; see `lopen.git.shadow`.

        Where there is one all the same, commands may change it no more than they may elsewhere.
        """
        guard = GitFolderGuard()
        if (root / ".git").exists():
            with suppress(GitError):  # one that git cannot work in is as good as none
                guard = Repository.open(root, clock=clock)._guard
        return shadow(root, git_dir, clock=clock, guard=guard, known=known)

    def linked(self, path: Path, branch: str) -> Repository:
        """The linked work tree at `path`, in which only `branch` is moved; others move theirs meanwhile.

        So of the shared references no other is put back after a command: whoever moved it may have been the
        person in their checkout, or a session beside this one.

        Raises:
            NotARepository: no work tree of this repository lies there.
        """
        git = GitCommand(self.references.git.executable, path.resolve(), self.references.git.clock)
        layout = discover(git)
        if layout.common_dir.resolve() != self.layout.common_dir.resolve():
            raise NotARepository(f"{path} is no work tree of {self.root}", hint="see: git worktree list")
        return Repository._made(git, layout, replace(self._terms, own=HEADS + branch))

    @staticmethod
    def _made(git: GitCommand, layout: Layout, terms: Terms, scratch: Path | None = None) -> Repository:
        settings = carried(git)
        if scratch is not None:
            return Repository(layout, git, settings, scratch, terms)
        folder = TemporaryFolder()
        repository = Repository(layout, git, settings, folder.path, terms)
        # Whatever works through the private folder keeps it alive, a shadow's guard too.
        weakref.finalize(repository._private, folder.remove)
        return repository

    # Where things stand

    def head(self) -> Head:
        return self.references.head()

    def branch_tip(self, name: str) -> str | None:
        return self.references.tip(HEADS + name)

    def reachable(self, commit: str, from_ref: str) -> bool:
        return self.references.reachable(commit, from_ref)

    def identity(self) -> str:
        """In whose name lopen commits, `Name <email>`.

        Raises:
            NoIdentity: git has not been told; the hint says how.
        """
        known = self._writer.identity()
        return f"{known['GIT_COMMITTER_NAME']} <{known['GIT_COMMITTER_EMAIL']}>"

    def ignore_suggestion(self) -> tuple[str, ...]:
        self._snapshots.follow(self.head().commit)
        return ignores.suggestions(ignores.exposed_caches(self._snapshots.ready(), self.references.git))

    def clear_leftovers(self, branch: str) -> tuple[str, ...]:
        return *remove_stale_locks(self.layout, branch), *super().clear_leftovers(branch)

    # lopen's commits

    def commit(self, tree: str, parent: str | None, message: str, branch: str) -> str:
        """Commit a snapshot on `branch` and return the new id, durable; the user's index then fits it.

        A crash between the branch's move and the index is mended by `align_index`.

        Raises:
            RefMoved: the branch is not at `parent` any more; nothing was changed.
            NoIdentity: nobody to commit as.
            GitError: HEAD is not on `branch`, or the commit would add a secret.
        """
        branches.check_head(self.head(), branch, parent)
        if tree == self._snapshots.latest:
            refuse_leaks(self.leaks, "committed")
        sha = self._writer.write(tree, parent, message, purpose="committed", sign=self._terms.sign)
        self.references.move(HEADS + branch, sha, parent, message.partition("\n")[0])
        self.align_index()
        return sha

    def align_index(self) -> None:
        """Make the user's index hold what HEAD holds, so that `git status` shows real differences alone."""
        self._snapshots.follow(self.head().commit)
        self._guard.look_again()
        install_index(self._snapshots.refreshed(), self.layout.index, self.references.git.clock)

    def find_commit(
        self, session_id: str, task_id: str, *, within: str = "HEAD", since: str | None = None
    ) -> CommitInfo | None:
        """The newest commit with these trailers that `within` reaches, down to `since`."""
        found = [c for c in self.session_commits(session_id, within=within, since=since) if c.task == task_id]
        return found[-1] if found else None

    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        start = self.references.resolve(within)
        found = commits.walk(self.references.git, start, since=since) if start else []
        return [commit for commit in found if session_id in (None, commit.session)]

    def reached(self, within: str, *, since: str | None = None) -> frozenset[str]:
        start = self.references.resolve(within)
        return commits.ids(self.references.git, start, since=since) if start else frozenset()

    # Going back

    def backup(self, session_id: str) -> str:
        """Keep the head and what is uncommitted under `refs/lopen/backup/<session>/<n>`; returns that name.

        The reference's commit has the work tree as its tree and the head as its parent.
        """
        purpose = "kept in a backup"
        head = self.head().commit
        tree = self.snapshot()
        refuse_leaks(self.leaks, purpose)
        if head is not None and trees.tree_of(self._private.git(), head) == tree:
            kept = head
        else:
            message = "Keep uncommitted work before a revert\n"
            kept = self._writer.write(tree, head, message, purpose=purpose)
        name = self.references.next_backup_name(session_id)
        self.references.move(name, kept, None, "backup before a revert")
        return name

    def reset_to(self, commit: str) -> None:
        """Make branch, index and work tree those of `commit`. What git ignores is never touched.

        Uncommitted work is gone afterwards: `backup` first.

        Raises:
            GitError: there is no such commit, or an operation of git is under way.
        """
        if operation := branches.unfinished_operation(self.layout):
            raise GitError(f"a {operation} is under way", hint=f"end it first: git {operation} --abort")
        head = self.head().commit
        tree = trees.tree_of(self.references.git, commit)
        now = self.snapshot()
        # Files first: if one cannot be written the branch still tells the truth, and it can be tried again.
        self.restore(tree, [change.path for change in self.changes(now, tree)])
        self.references.move("HEAD", commit, head, f"revert to {commit[:12]}")
        self.align_index()

    # The repository's own hooks

    def hooks_snapshot(self) -> HooksSnapshot:
        return commit_hooks.take_hooks(self.layout, self.references.git)

    def run_hooks(
        self,
        snapshot: HooksSnapshot,
        tree: str,
        message: str,
        runner: Runner,
        *,
        folder: Path,
        exclude: Mapping[str, str] = NO_EXCLUSIONS,
    ) -> HookOutcome:
        if not snapshot.hooks:
            return HookOutcome(True, "", tree, message)
        self._private.prepare(self.head().commit)
        run = commit_hooks.HookRun(self._private, folder, runner)
        passed, output, message_after = run.run(snapshot, tree, message)
        return HookOutcome(passed, output, self.snapshot(exclude), message_after)


def versioned(checkout: Checkout) -> Repository:
    """The repository behind a checkout.

    Raises:
        GitError: there is none, or `git.enabled` is off.
    """
    if not isinstance(checkout, Repository):
        raise GitError(
            "this session's work is committed, but git is off",
            hint="switch git.enabled on again, or begin anew: lopen run MODULE --new",
        )
    return checkout
