"""Completing a task: the commit and its record, each exactly once.

The intent is recorded before the commit and the result after it. If the process dies between the two, the
commit's trailers tell on resume; it is adopted only where tree and parent are those of the intent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lopen.core.events import Committed, Notice, TaskChanged
from lopen.git.commit_hooks import HooksSnapshot, Runner
from lopen.git.commits import completion_message
from lopen.git.repository import Repository
from lopen.loop.module_branch import ModuleBranch
from lopen.tools.calls import ToolResult, done, failed
from lopen.tools.workbench import Workbench
from lopen.workflow import changes
from lopen.workflow.next_step import enter_step
from lopen.workflow.session import CommitIntent, Session
from lopen.workflow.steps import Step, Trigger
from lopen.workflow.task_tree import State, Task


@dataclass
class Committer:
    """Commits the accepted work of one session. `run_hook` runs a hook of the user's in the sandbox."""

    repository: Repository
    branch: ModuleBranch
    run_hook: Runner
    scratch: Path  # where hooks may write

    def complete(self, bench: Workbench, task_id: str) -> ToolResult:
        """Commit the task in progress and record it complete; or say what stands against it."""
        session = bench.session
        task, owner = session.tree.task(task_id), session.tree.owner(task_id)
        assert task is not None
        assert owner is not None
        before = self.repository.head().commit
        if pause := self.branch.sync():
            return replace(failed(pause.message, outcome="refused"), pause=pause)
        if self.repository.head().commit != before:
            bench.project.verifier.touch()
            return failed(
                "the person committed on the branch, and their commit is part of the work now",
                "look at what changed (git log -p -1), verify again, then complete",
                outcome="refused",
            )
        tree = self.repository.snapshot()
        text = completion_message(
            module=session.module,
            task=task.name,
            component=owner.name,
            session=session.id,
            task_id=task.id,
            verdict=f"passed ({bench.evidence.confidence})",
            convention=bench.settings.git.convention,
        )
        refusal = (
            self._unverified(bench, tree) or self._secrets() or self._planted() or self._verify_commit(bench)
        )
        if refusal is not None:
            return refusal
        hooked = self._hooked(bench, tree, text)
        if isinstance(hooked, ToolResult):
            return hooked
        sha = self._commit(bench, task, tree, hooked)
        _tell_left_out(bench)
        return replace(done(task_id=task.id, status="complete", commit=sha), recorded=True)

    def _commit(self, bench: Workbench, task: Task, tree: str, text: str) -> str:
        parent = self.repository.head().commit
        assert parent is not None
        assert bench.session.branch is not None
        intent = CommitIntent(task.id, tree, parent, text)
        bench.journal.save(changes.intend_commit(bench.session, intent))
        sha = self.repository.commit(tree, parent, text, bench.session.branch)
        self.branch.publish()
        _record(bench, task, sha, Committed(sha, text.splitlines()[0], bench.session.branch))
        return sha

    def _unverified(self, bench: Workbench, tree: str) -> ToolResult | None:
        """Refuse a tree that differs from the verified one in more than lopen's own documents."""
        verified = bench.project.verifier.tree()
        if tree == verified:
            return None
        papers = bench.project.verifier.papers
        changed = [c.path for c in self.repository.changes(verified, tree) if c.path not in papers]
        if not changed:
            return None
        bench.project.verifier.touch()
        return failed(
            f"the work tree changed while the task was being completed: {', '.join(changed[:10])}",
            "look at what changed, verify again, then complete",
            outcome="refused",
        )

    def _secrets(self) -> ToolResult | None:
        """A commit that would add a secret is refused with the place."""
        if not self.repository.leaks:
            return None
        first = self.repository.leaks[0]
        return failed(
            f"{first} holds what looks like a secret ({first.kind}); not committed",
            "remove it, read it from the environment instead, then verify again",
            outcome="refused",
        )

    def _planted(self) -> ToolResult | None:
        """No commit carries settings of other tools, or of lopen, that a command put into a folder further down."""
        if not self.repository.changed_protected_paths:
            return None
        return failed(
            f"{', '.join(self.repository.changed_protected_paths[:5])}: the person's alone to write; not committed",
            "remove what was added there and put back what was changed (run_command), then complete",
            outcome="refused",
        )

    def _verify_commit(self, bench: Workbench) -> ToolResult | None:
        """The specification's verify-commit runs before each commit."""
        before = bench.project.verifier.tree()
        result = bench.project.verifier.run("verify_commit")
        if result is None or (result.passed and result.tree == before):
            return None
        said = "changed files" if result.passed else f"failed with exit code {result.exit_code}"
        return failed(
            f"verify-commit {said}",
            "fix it, verify again, then complete",
            outcome="refused",
            output=result.output,
        )

    def _hooked(self, bench: Workbench, tree: str, text: str) -> str | ToolResult:
        """The message, once the repository's own hooks, as they were when the session began, let it through."""
        outcome = self.repository.run_hooks(
            HooksSnapshot.from_json(bench.session.examined.hooks or "[]"),
            tree,
            text,
            self.run_hook,
            folder=self.scratch,
        )
        bench.project.verifier.touch()
        if not outcome.passed:
            return failed(
                "a commit hook of the repository refused",
                "fix what it reports, verify again, then complete",
                outcome="refused",
                output=outcome.output,
            )
        if outcome.tree_after != tree:
            return failed(
                "a commit hook of the repository changed files, so the verifications are stale",
                "look at what it changed, verify again, then complete",
                outcome="refused",
                output=outcome.output,
            )
        return outcome.message_after


def _tell_left_out(bench: Workbench) -> None:
    """A person learns that the commit lacks what was written for it."""
    if bench.evidence.ignored:
        listed = ", ".join(sorted(bench.evidence.ignored)[:10])
        bench.journal.tell(
            Notice("warning", f"written, but ignored by git and so in no commit: {listed} (see .gitignore)")
        )


def _record(bench: Workbench, task: Task, commit: str, *events: Committed) -> None:
    """The task complete, in one transaction with what is told of it."""
    session = bench.session
    decision = completed(session, task, commit)
    owner = session.tree.owner(task.id)
    told = TaskChanged(task.id, task.name, owner.name if owner else "", State.COMPLETE.value)
    bench.journal.save(decision, *events, told)


def completed(session: Session, task: Task, commit: str) -> Session:
    """The session with the task complete; its failures are forgotten, its commit kept."""
    session = changes.complete_task(session, task, commit)
    owner = session.tree.owner(task.id)
    if session.step is Step.ITERATE_THROUGH_TASKS and owner is not None and owner.open_tasks:
        return enter_step(session, Trigger.TASK_ITERATION_COMPLETE).session
    return session


def adopt(session: Session, repository: Repository) -> tuple[Session, tuple[Committed | TaskChanged, ...]]:
    """Take in a commit whose record is missing, where it is exactly the intended one. Reads alone: the index is
    still the one from before it.
    """
    intent = session.intents.commit
    if intent is None:
        return session, ()
    task = session.tree.task(intent.task_id)
    found = repository.find_commit(session.id, intent.task_id, within=session.branch or "HEAD")
    same = found is not None and (found.tree, found.parent) == (intent.tree, intent.parent)
    if task is None or found is None or not same or task.state is not State.IN_PROGRESS:
        return changes.intend_commit(session, None), ()
    owner = session.tree.owner(task.id)
    return completed(session, task, found.sha), (
        Committed(found.sha, found.subject, session.branch or "", adopted=True),
        TaskChanged(task.id, task.name, owner.name if owner else "", State.COMPLETE.value, "adopted"),
    )
