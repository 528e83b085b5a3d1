"""The repository a module is built in: its head, its branch, lopen's commits, and going back.

The functions behind each method lie in the room's other files; here they are put together over one layout and
the two doors.
"""

from __future__ import annotations

import os
import shlex
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lopen.clock import Clock
from lopen.git import backup, branches, commits, hooks, ignores, isolation, leftovers, protection, trees
from lopen.git.checkout import Checkout
from lopen.git.command import Command, find_git
from lopen.git.commits import CommitInfo
from lopen.git.errors import GitError, NotARepository
from lopen.git.hooks import HookOutcome, HooksSnapshot, Runner
from lopen.git.index import install_index
from lopen.git.layout import Layout, check_version, discover
from lopen.git.nested import Nested, find_nested
from lopen.git.private import Carried, PrivateFolder, carried, write_if_different
from lopen.git.protection import ProtectedState, Tampering
from lopen.git.refs import HEADS, Head, References
from lopen.git.screening import Leak, Screen, Values
from lopen.git.shadow import ShadowTree, shadow
from lopen.git.snapshot import Snapshots
from lopen.git.worktree import NO_EXCLUSIONS
from lopen.storage.temporary import TemporaryFolder


class Repository(Checkout):
    """One checkout of a git repository whose top is the project's root."""

    def __init__(
        self,
        layout: Layout,
        git: Command,
        *,
        settings: Carried,
        scratch: Path,
        sign: bool,
        known: Values = tuple,
        own: str = "",
    ) -> None:
        # The references door. Explicit folders, so that no configured work tree leads elsewhere.
        self._git = git.having(
            {
                "GIT_DIR": str(layout.git_dir),
                "GIT_WORK_TREE": str(layout.root),
                "GIT_OPTIONAL_LOCKS": "0",
            }
        )
        self._references = References(layout, self._git)
        private = PrivateFolder(scratch, layout, git, settings=settings, info=layout.common_dir / "info")
        self._screen = Screen(layout.root, known)
        snapshots = Snapshots(private, seed=layout.index, screen=self._screen)
        super().__init__(private, snapshots, base=lambda: self._references.head().commit)
        self._clock = git.clock
        self._sign = sign
        self._known = known
        self._own = own  # the only reference that is guarded where others move theirs meanwhile
        self._identity: Mapping[str, str] = {}
        self._nested: Nested | None = None  # not looked for yet
        self.ignored_filters = settings.ignored_filters

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
        git = Command(find_git(root), root.resolve(), clock)
        check_version(git)
        return Repository._made(git, discover(git), sign=sign, scratch=scratch, known=known)

    @staticmethod
    def _made(
        git: Command,
        layout: Layout,
        *,
        sign: bool,
        scratch: Path | None = None,
        known: Values = tuple,
        own: str = "",
    ) -> Repository:
        settings = carried(git)
        if scratch is not None:
            return Repository(
                layout, git, settings=settings, scratch=scratch, sign=sign, known=known, own=own
            )
        folder = TemporaryFolder()
        repository = Repository(
            layout, git, settings=settings, scratch=folder.path, sign=sign, known=known, own=own
        )
        weakref.finalize(repository, folder.remove)
        return repository

    @staticmethod
    def shadow(root: Path, git_dir: Path, *, clock: Clock, known: Values = tuple) -> ShadowTree:
        """A private history of snapshots for a folder without a repository; see `lopen.git.shadow`.

        Where there is one all the same, commands may change it no more than they may elsewhere.
        """
        guard = None
        if (root / ".git").exists():
            with suppress(GitError):  # one that git cannot work in is as good as none
                guard = Repository.open(root, clock=clock)
        return shadow(root, git_dir, clock=clock, guard=guard, known=known)

    # Where things stand

    @property
    def git_dir(self) -> Path:
        """The git folder of this checkout; of a linked work tree its own, not the shared one."""
        return self.layout.git_dir

    def head(self) -> Head:
        """What HEAD is: the commit (None before the first) and the branch (None where detached)."""
        return self._references.head()

    def branch_tip(self, name: str) -> str | None:
        """The commit of a branch, or None where there is no such branch."""
        return self._references.tip(HEADS + name)

    def likely_home(self, other: str) -> str | None:
        """The branch that work on the branch `other` is most likely meant for, where nobody noted it."""
        return branches.likely_home(self._references, self._git, other)

    def free_name(self, name: str) -> str:
        """A name that the branch `name` can be put aside under."""
        return branches.free_name(self._references, name)

    def reachable(self, commit: str, from_ref: str) -> bool:
        """Whether `commit` is in the history of `from_ref`: a branch name, `HEAD`, `refs/…` or an id."""
        return self._references.reachable(commit, from_ref)

    def identity(self) -> str:
        """In whose name lopen commits, `Name <email>`.

        Raises:
            NoIdentity: git has not been told; the hint says how.
        """
        known = self._committer()
        return f"{known['GIT_COMMITTER_NAME']} <{known['GIT_COMMITTER_EMAIL']}>"

    def dirty(self, allow: Callable[[str], bool]) -> tuple[str, ...]:
        """Uncommitted paths, staged or not, that git does not ignore and `allow` does not excuse, sorted.

        A folder that is a repository of its own counts as one path.
        """
        self._snapshots.follow(self.head().commit)
        found = self._snapshots.survey_users_index()
        return tuple(path for path in sorted((*found.changed, *found.embedded)) if not allow(path))

    def ignore_suggestion(self) -> tuple[str, ...]:
        """The `.gitignore` lines that would cover the well-known caches which lie here and are not ignored."""
        self._snapshots.follow(self.head().commit)
        return ignores.suggestions(ignores.exposed_caches(self._snapshots.ready(), self._git))

    # The module's branch and its commits

    def hide_state(self) -> None:
        """Have git ignore lopen's state on every branch, also where `.lopen/.gitignore` is not versioned.

        Raises:
            GitError: `info/exclude` cannot be written.
        """
        file = self.layout.common_dir / "info" / "exclude"
        try:
            file.parent.mkdir(exist_ok=True)
            there = os.fsdecode(file.read_bytes()) if file.is_file() else ""
            write_if_different(file, os.fsencode(ignores.with_lines(there, ignores.STATE_PATTERNS)))
        except OSError as error:
            raise GitError(f"{file}: {error.strerror or error}", hint="make it writable") from error

    def start_branch(self, name: str) -> Head:
        """Put HEAD on the branch `name`, made from the current head where it is new. No file is touched.

        Raises:
            GitError: that would change files, or an operation of git is under way; the hint says what to do.
        """
        return branches.start_branch(self.layout, self._references, self._git, name)

    def check_start(self, name: str) -> None:
        """Raises what `start_branch` would; nothing changes."""
        branches.check_start(self.layout, self._references, self._git, name)

    def clear_leftovers(self, branch: str) -> tuple[str, ...]:
        """Remove what a killed run left: locks on index, HEAD and `branch`, half-written files; the paths removed."""
        locks = leftovers.clear_locks(self.layout, branch)
        return *locks, *leftovers.clear_half_written(self._reader())

    def commit(self, tree: str, parent: str | None, message: str, branch: str) -> str:
        """Commit a snapshot on `branch` and return the new id, durable; the user's index then fits it.

        A crash between the branch's move and the index is mended by `align_index`.

        Raises:
            RefMoved: the branch is not at `parent` any more; nothing was changed.
            NoIdentity: nobody to commit as.
            GitError: HEAD is not on `branch`.
        """
        branches.check_head(self.head(), branch, parent)
        if self.leaks and tree == self._snapshots.latest:
            self._refuse_leaks("committed")
        self._private.prepare(parent)
        self._refuse_stored(parent, tree, "committed")
        git = self._private.git().having(self._committer())
        sha = commits.write_commit(git, tree, parent, message, sign=self._sign)
        self._references.move(HEADS + branch, sha, parent, message.partition("\n")[0])
        self.align_index()
        return sha

    def align_index(self) -> None:
        """Make the user's index hold what HEAD holds, so that `git status` shows real differences alone."""
        self._snapshots.follow(self.head().commit)
        self._nested = None
        install_index(self._snapshots.refreshed(), self.layout.index, self._clock)

    def find_commit(
        self, session_id: str, task_id: str, *, within: str = "HEAD", since: str | None = None
    ) -> CommitInfo | None:
        """The newest commit with these trailers that `within` reaches, down to `since`."""
        found = [c for c in self.session_commits(session_id, within=within, since=since) if c.task == task_id]
        return found[-1] if found else None

    def session_commits(
        self, session_id: str | None = None, *, within: str = "HEAD", since: str | None = None
    ) -> list[CommitInfo]:
        """lopen's commits (of one session where given) that `within` reaches, down to `since`, oldest first."""
        start = self._references.resolve(within)
        found = commits.walk(self._git, start, since=since) if start else []
        return [commit for commit in found if session_id in (None, commit.session)]

    # Going back

    def backup(self, session_id: str) -> str:
        """Keep the head and what is uncommitted under `refs/lopen/backup/<session>/<n>`; returns that name.

        The reference's commit has the work tree as its tree and the head as its parent.
        """
        head = self.head().commit
        tree = self.snapshot()
        self._refuse_leaks("kept in a backup")
        if head is not None and trees.tree_of(self._private.git(), head) == tree:
            kept = head
        else:
            self._refuse_stored(head, tree, "kept in a backup")
            git = self._private.git().having(self._committer())
            message = "Keep uncommitted work before a revert\n"
            kept = commits.write_commit(git, tree, head, message, sign=False)
        name = backup.next_name(self._references, session_id)
        self._references.move(name, kept, None, "backup before a revert")
        return name

    def _refuse_stored(self, parent: str | None, tree: str, what: str) -> None:
        """As it is in git's objects by now, whatever was looked over before."""
        git = self._private.git()
        old = parent or self.layout.empty_tree
        changed = [(c.path, c.after) for c in trees.changes(git, old, tree) if c.mode_after != trees.GITLINK]
        self._refuse_leaks(
            what,
            self._screen.stored(
                [(path, blob) for path, blob in changed if blob],
                self.layout.object_format,
                lambda blob: git.run("cat-file", "blob", blob).stdout,
                lambda path: trees.file_at(git, old, path),
            ),
        )

    def _refuse_leaks(self, what: str, leaks: Sequence[Leak] | None = None) -> None:
        leaks = self.leaks if leaks is None else leaks
        if not leaks:
            return
        first = leaks[0]
        raise GitError(
            f"{first} holds what looks like a secret ({first.kind}); it would be {what}, in the repository for good",
            hint=f"take it out of the file, or have git ignore the file: echo {shlex.quote(f'/{first.path}')} >> .gitignore",
        )

    def reset_to(self, commit: str) -> None:
        """Make branch, index and work tree those of `commit`. What git ignores is never touched.

        Uncommitted work is gone afterwards: `backup` first.

        Raises:
            GitError: there is no such commit, or an operation of git is under way.
        """
        if operation := branches.unfinished_operation(self.layout):
            raise GitError(f"a {operation} is under way", hint=f"end it first: git {operation} --abort")
        head = self.head().commit
        tree = trees.tree_of(self._git, commit)
        now = self.snapshot()
        # Files first: if one cannot be written the branch still tells the truth, and it can be tried again.
        self.restore(tree, [change.path for change in self.changes(now, tree)])
        self._references.move("HEAD", commit, head, f"revert to {commit[:12]}")
        self.align_index()

    # The repository's own hooks

    def hooks_snapshot(self) -> HooksSnapshot:
        """The commit hooks as they are now; taken when a session begins, they are all that ever runs in it."""
        return hooks.take_hooks(self.layout, self._git)

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
        """Run the hooks over `tree` before it is committed. `folder` is scratch space that they may write to."""
        if not snapshot.hooks:
            return HookOutcome(True, "", tree, message)
        self._private.prepare(self.head().commit)
        run = hooks.HookRun(self._private, folder, runner)
        passed, output, message_after = run.run(snapshot, tree, message)
        return HookOutcome(passed, output, self.snapshot(exclude), message_after)

    # What a command may not change

    def protected_state(self) -> ProtectedState:
        """HEAD, references, configuration and hooks as they are now. Starts no process but the first time."""
        return protection.take_state(self.layout, self._own, self._inside())

    def put_back(self, before: ProtectedState) -> Tampering:
        """Undo what a command changed of the protected files, and look whether objects vanished."""
        restored = protection.put_back(self.layout, before, self._own, self._inside())
        vanished = protection.objects_missing(self.layout, before) and not self._is_whole()
        return Tampering(restored, vanished)

    def exposed(self) -> tuple[str, ...]:
        """What a sandbox has to keep read-only besides `.git`, by absolute path: git's folders elsewhere in the
        project, the `.git` of nested repositories, and `nested_settings`.
        """
        root = f"{self.root}/"
        elsewhere = [str(f) for f in (self.layout.git_dir, self.layout.common_dir) if str(f).startswith(root)]
        nested = self._inside()
        places = (*elsewhere, *nested.present, *(root + path for path in nested.settings))
        return tuple(p for p in dict.fromkeys(places) if not f"{p}/".startswith(f"{root}.git/"))

    def scattered(self) -> bool:
        """Whether there is more to guard than one `.git` folder at the top."""
        return bool(self._inside().starts) or self.layout.git_dir != self.root / ".git"

    def nested_settings(self) -> tuple[str, ...]:
        """Versioned `.claude/settings*` and `.lopen` further down, relative to the root."""
        return self._inside().settings

    # Work trees beside the user's checkout

    def add_worktree(self, path: Path, branch: str) -> Repository:
        """A linked work tree at `path` with its files, HEAD on `branch`.

        Raises:
            GitError: the path is taken, or the branch is checked out elsewhere.
        """
        isolation.add(self._git, self._references, path, branch)
        return self._filled(path, branch)

    def add_detached(self, path: Path, commit: str, branch: str) -> Repository:
        """A linked work tree at `path` with the files of `commit`, HEAD on no branch; `branch` is to be its own.

        Raises:
            GitError: the path is taken.
        """
        isolation.add_detached(self._git, path, commit)
        return self._filled(path, branch)

    def linked(self, path: Path, branch: str) -> Repository:
        """The linked work tree at `path`, in which only `branch` is moved; others move theirs meanwhile.

        So of the shared references no other is put back after a command: whoever moved it may have been the
        person in their checkout, or a session beside this one.

        Raises:
            NotARepository: no work tree of this repository lies there.
        """
        git = Command(self._git.executable, path.resolve(), self._clock)
        layout = discover(git)
        if layout.common_dir.resolve() != self.layout.common_dir.resolve():
            raise NotARepository(f"{path} is no work tree of {self.root}", hint="see: git worktree list")
        return Repository._made(git, layout, sign=self._sign, known=self._known, own=HEADS + branch)

    def _filled(self, path: Path, branch: str) -> Repository:
        linked = self.linked(path, branch)
        linked.align_index()
        tree = trees.tree_of(self._git, linked._existing_head())
        linked.restore(tree, trees.entries(self._git, tree))
        linked.align_index()
        return linked

    def forget_worktree(self, path: Path) -> None:
        """The linked work tree at `path`, whose folder is gone, holds its branch no longer."""
        isolation.forget(self._git, path)

    def remove_worktree(self, path: Path, allow: Callable[[str], bool] = lambda _: False) -> None:
        """Delete a linked work tree; its branch stays. `allow` excuses uncommitted paths.

        Raises:
            GitError: it holds uncommitted work.
        """
        left = Repository.open(path, clock=self._clock).dirty(allow)
        if left:
            raise GitError(
                f"{path} holds uncommitted work: {', '.join(left[:5])}",
                hint=f"git worktree remove --force {shlex.quote(str(path))}",
            )
        isolation.remove(self._git, path)

    # Inside

    def _inside(self) -> Nested:
        """The nested repositories and settings; looked for once, and again when HEAD moved."""
        if self._nested is None:
            self._snapshots.follow(self.head().commit)
            git = self._snapshots.ready()
            embedded = self._snapshots.survey().embedded
            self._nested = find_nested(self.layout, git, embedded)
        return self._nested

    def _committer(self) -> Mapping[str, str]:
        if not self._identity:
            self._identity = commits.identity(self._git)
        return self._identity

    def _existing_head(self) -> str:
        head = self.head()
        if head.commit is None:
            raise commits.unborn_error(head.branch or "HEAD")
        return head.commit

    def _is_whole(self) -> bool:
        """Whether every object that HEAD needs can be read."""
        head = self.head().commit
        if head is None:
            return True
        answer = self._git.run("rev-list", "--objects", "--quiet", head, accept=(0, 1, 128))
        return answer.exit_code == 0


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
