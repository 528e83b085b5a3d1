"""The module's branch: beginning it with its first commit, and standing on it before anything is paid for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from lopen.core.errors import LopenError
from lopen.core.escape import inert
from lopen.core.events import Committed, Event, Notice
from lopen.files.work_trees import WorkTree
from lopen.git.branches import require_commit
from lopen.git.commits import approval_message
from lopen.git.errors import BranchConflict
from lopen.git.ignores import hide_state
from lopen.git.refs import Head
from lopen.git.repository import Repository, require_repository
from lopen.settings.schema import Git
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow import changes

MOST_LISTED = 20  # files in a message


class DirtyTree(LopenError):
    """Uncommitted work lies in the tree where a module's branch is to begin."""


@dataclass(frozen=True)
class ModuleBranch:
    """The branch of one session's module, in the place where the session works."""

    place: WorkTree
    journal: Journal
    store: SessionStore
    settings: Git

    def name(self, module: str) -> str:
        """Return the name of the module's branch."""
        return self.settings.branch_prefix + module

    def check_head(self, module: str) -> None:
        """Refuse to begin a branch in a repository without a commit."""
        if not self.place.linked:
            require_commit(self.place.repository.head(), module)

    def begin(self, module: str) -> list[Event]:
        """Put HEAD on the module's branch and make its first commit; each once, also if the process died between."""
        session, repository = self.journal.session, require_repository(self.place.repository)
        branch = self.name(module)
        head = repository.head()
        if not on_own_branch(repository, session.id, branch):
            refuse_dirt(repository, module)
            self.place.check_out_start(branch)
            head = repository.head()
        begin_at = require_commit(head, module)
        repository.identity()  # raises where git has no name for the author
        told: list[Event] = []
        if head.branch is None and not self.place.linked:
            told.append(Notice("info", f"HEAD is detached; the branch starts at {begin_at[:12]}"))
        check_branch(repository, module, branch)
        told += self._stacked(head, branch, begin_at)
        if session.start_branch is None:
            left = self._start_branch(branch)
            self.journal.save(changes.leave_branch(session, left))  # first: a crash must not lose it
        self.place.ignore_state()
        hide_state(repository.layout)
        on = repository.branches.start(branch)
        if head.branch not in (None, branch) and not self.place.linked:
            told.append(Notice("info", f"switched from {head.branch} to {branch}"))
        self.place.copy_documents(module)
        commit = self._first_commit(module, branch, on.commit or begin_at)
        self.journal.save(changes.begin_branch(self.journal.session, branch, commit))
        return [*told, Committed(commit, f"docs({module}): approve specification", branch)]

    def stand(self) -> None:
        """Require HEAD on the session's branch; begin the branch anew where it was merged and deleted."""
        branch = self.journal.session.branch
        if branch is None or self.is_checked_out(branch):
            return
        repository = require_repository(self.place.repository)
        refuse_dirt(repository, self.journal.session.module)
        repository.branches.start(branch)

    def is_checked_out(self, branch: str) -> bool:
        """Return whether HEAD is on the branch; False where the branch is gone.

        Raises `LopenError` where the branch exists and HEAD is elsewhere.
        """
        repository = require_repository(self.place.repository)
        repository.branches.require_plain(branch)
        head = repository.head()
        if head.branch != branch and repository.branch_tip(branch) is not None:
            folder = f"-C {shlex.quote(str(self.place.root))} " if self.place.linked else ""
            raise LopenError(
                f"HEAD is on {head.branch or 'no branch'}, not on {branch}",
                hint=f"git {folder}switch {branch}, then: lopen resume",
            )
        return head.branch == branch

    def clear_leftovers(self) -> tuple[Notice, ...]:
        """Remove what a dead process left in the repository: nobody else would."""
        session = self.journal.session
        cleared = self.place.repository.clear_leftovers(session.branch or self.name(session.module))
        return tuple(Notice("info", f"removed what the interrupted run left: {path}") for path in cleared)

    def align_index(self) -> None:
        """Bring the index to HEAD after a commit was adopted."""
        require_repository(self.place.repository).align_index()

    def _stacked(self, head: Head, branch: str, begin_at: str) -> Iterator[Notice]:
        """Report that the branch begins on another module's, whose work comes along."""
        below = head.branch or ""
        if self.place.linked or below == branch or not below.startswith(self.settings.branch_prefix):
            return
        repository, module = require_repository(self.place.repository), self.journal.session.module
        home = shlex.quote(repository.branches.likely_base(below) or "BRANCH")
        aside = f"git branch -m {branch} {repository.branches.free_name(branch)}"
        yield Notice(
            "info",
            f"{branch} begins on {below} at {begin_at[:12]}: the work there comes along when it is merged",
            f"to begin elsewhere, stop and: git switch {home} && git checkout {branch} -- specs/{module} && "
            f"{aside} && lopen run {module} --new",
        )

    def _start_branch(self, branch: str) -> str | None:
        """Return the person's branch before the module's: now, or when an earlier session left it."""
        now = self.place.user_branch()
        if now not in (None, branch):
            return now
        module = self.journal.session.module
        earlier = (s.start_branch for s in self.store.readable(self.store.ids(module=module)))
        return next((name for name in earlier if name), None)

    def _first_commit(self, module: str, branch: str, parent: str) -> str:
        """Make the branch's first commit; return the one that is there if the process died after it."""
        session, repository = self.journal.session, require_repository(self.place.repository)
        made = [c.sha for c in repository.session_commits(session.id, within=branch) if c.task is None]
        if made:
            repository.align_index()
            return made[0]
        text = approval_message(module=module, session=session.id, convention=self.settings.convention)
        return repository.commit(repository.snapshot(), parent, text, branch)


def check_branch(repository: Repository, module: str, branch: str) -> None:
    """Refuse to begin on the module's branch while it holds work that the person's head has not."""
    try:
        repository.branches.check(branch)
    except BranchConflict as error:
        error.hint = how_to_go_on(repository, module, branch)
        raise


def how_to_go_on(repository: Repository, module: str, branch: str) -> str:
    """The steps out where the module's branch holds work that is not merged, and the person went on elsewhere.

    The specification as it is here goes along. What lies open is committed first: git would not switch over it.
    """
    papers = f"specs/{module}"
    lie_open = repository.dirty(lambda path: not path.startswith((f"{papers}/", ".lopen/")))
    paths = shlex.join(dict.fromkeys(papers if p.startswith(papers) else p for p in lie_open))
    keep = [f"git add {paths}", f"git commit -m 'docs({module}): specify' -- {paths}"] if paths else []
    along = [*keep, f"git switch {branch}", f"git checkout @{{-1}} -- {papers}"]
    return (
        f"to go on with it: {' && '.join(along)}\n"
        f"to start afresh: git branch -m {branch} {repository.branches.free_name(branch)}\nthen: lopen run {module}"
    )


def on_own_branch(repository: Repository, session: str, branch: str) -> bool:
    """Return whether HEAD is on a branch with the session's own commits, as after its record was lost."""
    on_it = repository.head().branch == branch
    return on_it and bool(repository.session_commits(session, within=branch))


def refuse_dirt(repository: Repository, module: str) -> None:
    """Work that is not lopen's must not slip into its commits: name it, and do nothing."""

    def harmless(path: str) -> bool:
        parts = PurePosixPath(path).parts
        return parts[:1] == (".lopen",) or parts[:2] == ("specs", module)

    dirty = repository.dirty(harmless)
    if dirty:
        listed = "".join(f"\n  {inert(path)}" for path in dirty[:MOST_LISTED])
        more = f"\n  and {len(dirty) - MOST_LISTED} more" if len(dirty) > MOST_LISTED else ""
        raise DirtyTree(
            f"uncommitted work lies in {repository.root}:{listed}{more}",
            hint=f"commit it there, the specification too: git add {_to_add(dirty, module)} && git commit; then run again",
        )


def _to_add(dirty: Sequence[str], module: str) -> str:
    """Return what `git add` takes for these paths and the specification: all there is, where they are many or unprintable."""
    if len(dirty) > MOST_LISTED or any(inert(path) != path for path in dirty):
        return "--all"
    return shlex.join([f"specs/{module}", *dirty])
