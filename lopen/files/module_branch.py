"""The module's branch: its first commit, and keeping lopen's clone and the person's repository together.

lopen commits in its clone and brings each commit into the person's repository. The person's commits on the branch are
taken over before the next task; a branch that does not descend from lopen's last commit waits for the person.
"""

from __future__ import annotations

from dataclasses import dataclass

from lopen.core.events import Committed, Event, Notice
from lopen.files.workplace import Workplace
from lopen.git.clones import FETCHED
from lopen.git.commits import Convention, approval_message
from lopen.git.errors import GitError, RefMoved
from lopen.git.refs import BRANCH_PREFIX, HEADS, require_commit
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.pauses import Halt, Pause


@dataclass(frozen=True)
class ModuleBranch:
    """The branch of one session's module, in lopen's clone and in the person's repository."""

    place: Workplace
    journal: Journal
    store: SessionStore
    convention: Convention

    def begin(self, module: str) -> list[Event]:
        """Put the clone on the module's branch and make its first commit; each once, also if the process died between."""
        session, clone = self.journal.session, self.place.repository
        branch = BRANCH_PREFIX + module
        self.check(branch)
        clone.identity()  # raises where git has no name for the author
        told: list[Event] = []
        begun = clone.head().branch == branch and clone.session_commits(session.id, within=branch)
        if not begun:
            if line := self.place.not_part_of_it(module):
                told.append(Notice("info", line))
            self.place.check_out_start(branch)
            told += self._stacked(branch)
        if session.start_branch is None:
            session = changes.leave_branch(session, self._start_branch(branch))
            self.journal.save(session)  # first: a crash must not lose it
        start = require_commit(clone.head(), module)
        if clone.branch_tip(branch) != start:
            clone.references.move(HEADS + branch, start, clone.branch_tip(branch), f"start {branch}")
        clone.references.attach_head(branch)
        self.place.copy_documents(module)
        commit = self._first_commit(module, branch, start)
        self.place.publish(branch)
        self.journal.save(changes.begin_branch(self.journal.session, branch, commit))
        return [*told, Committed(commit, f"docs({module}): approve specification", branch)]

    def check(self, branch: str) -> None:
        """Refuse a branch that lopen cannot move in the person's repository.

        Raises:
            GitError: the name is invalid, or a checkout of the person stands on it.
        """
        person = self.place.person
        person.references.check_name(branch)
        if pause := self._checked_out(branch):
            raise GitError(pause.message, hint=f"{pause.command}, then: lopen resume")

    def sync(self) -> Pause | None:
        """Bring both branches together: publish the commits that a killed run did not, take over the person's commits.

        Return the pause where the person has to decide.
        """
        branch = self.journal.session.branch
        if branch is None:
            return None
        place, person, clone = self.place, self.place.person, self.place.repository
        if pause := self._checked_out(branch):
            return pause
        theirs, ours = person.branch_tip(branch), clone.branch_tip(branch)
        fetched = clone.references.tip(FETCHED)
        if clone.head().branch != branch:
            self._restore_clone(branch, theirs)
            ours = clone.branch_tip(branch)
        if theirs == ours:
            place.remember(branch)
            return None
        try:
            if theirs is None and fetched is not None:  # the person deleted it, after a merge for example
                place.take_over(branch, require_commit(person.head()))
                place.publish(branch)
                return None
            if theirs in (None, fetched):
                place.publish(branch)
                return None
            assert theirs is not None
            if not clone.has_commit(theirs):
                place.fetch(branch)
            if ours is not None and clone.reachable(ours, theirs):
                place.take_over(branch, theirs)
                self.journal.tell(Notice("info", f"took over {theirs[:12]}, which you committed on {branch}"))
                return None
        except RefMoved as error:
            return self._checked_out(branch) or self._waits(
                error.message, f"lopen resume {self.journal.session.id}"
            )
        except GitError as error:
            return self._waits(
                f"uncommitted work of the task stands against your commits on {branch}: {error.message}",
                f"lopen revert {self.journal.session.module}",
            )
        assert ours is not None
        place.bring_objects(branch)
        return self._waits(
            f"{branch} is at {theirs[:12]} in your repository, which does not contain lopen's last commit {ours[:12]}",
            f"git branch -f {branch} {ours[:12]}",
        )

    def publish(self) -> None:
        """Bring a new commit into the person's repository; where that cannot be, `sync` tells before the next task."""
        try:
            self.place.publish(self.journal.session.branch or "")
        except RefMoved as error:
            self.journal.tell(Notice("warning", f"the commit is not in your repository yet: {error.message}"))

    def clear_leftovers(self) -> tuple[Notice, ...]:
        """Remove the remains of a dead process in the clone, and its lock on the person's branch."""
        session = self.journal.session
        branch = session.branch or BRANCH_PREFIX + session.module
        cleared = (
            *self.place.person.references.remove_lock(branch),
            *self.place.repository.clear_leftovers(branch),
        )
        return tuple(Notice("info", f"removed what the interrupted run left: {path}") for path in cleared)

    def _restore_clone(self, branch: str, theirs: str | None) -> None:
        """Put a clone that was made anew on the branch."""
        clone = self.place.repository
        if theirs is not None and clone.branch_tip(branch) != theirs:
            self.place.fetch(branch)
            clone.references.move(HEADS + branch, theirs, clone.branch_tip(branch), "go on")
        if theirs is not None and clone.head().commit != theirs:
            clone.reset_to(theirs)
        clone.references.attach_head(branch)

    def _checked_out(self, branch: str) -> Pause | None:
        """Return the pause where a checkout of the person stands on the branch."""
        person = self.place.person
        folder = person.references.checked_out(branch)
        if folder is None:
            return None
        away = self.journal.session.start_branch or person.references.likely_base(branch) or "main"
        there = "" if folder == person.root else f"-C {folder} "
        return self._waits(
            f"{branch} is checked out in {folder}, and lopen does not change your checkout",
            f"git {there}switch {away if away != branch else 'main'}",
        )

    def _waits(self, message: str, command: str) -> Pause:
        return Halt("branch", message, command)

    def _stacked(self, branch: str) -> list[Event]:
        """Report that the branch begins on another module's, whose work comes along."""
        below = self.place.person.head().branch or ""
        if below == branch or not below.startswith(BRANCH_PREFIX):
            return []
        at = (self.place.repository.head().commit or "")[:12]
        home = self.place.person.references.likely_base(below) or "BRANCH"
        module = self.journal.session.module
        return [
            Notice(
                "info",
                f"{branch} begins on {below} at {at}: the work there comes along when it is merged",
                f"to begin elsewhere, stop and: git switch {home} && git branch -D {branch} && lopen run {module} --new",
            )
        ]

    def _start_branch(self, branch: str) -> str | None:
        """Return the person's branch before the module's: now, or when an earlier session left it."""
        now = self.place.person.head().branch
        if now not in (None, branch):
            return now
        module = self.journal.session.module
        earlier = (s.start_branch for s in self.store.readable(self.store.ids(module=module)))
        return next((name for name in earlier if name), None)

    def _first_commit(self, module: str, branch: str, parent: str) -> str:
        """Make the branch's first commit; return the existing one if the process died after it."""
        session, clone = self.journal.session, self.place.repository
        made = [c.sha for c in clone.session_commits(session.id, within=branch) if c.task is None]
        if made:
            clone.align_index()
            return made[0]
        text = approval_message(module=module, session=session.id, convention=self.convention)
        return clone.commit(clone.snapshot(), parent, text, branch)
