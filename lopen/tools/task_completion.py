"""Complete a task: the claim, missing verifications, the verdict bound to the tree, commit, saved state.

The intent is recorded before the commit and the result after it. If the process dies between the two, the
commit's trailers tell on resume. A commit is adopted only if its tree and parent match the intent.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lopen.core.events import Committed, GuardrailRaised, Notice, TaskChanged
from lopen.git.commits import completion_message
from lopen.git.repository import Repository
from lopen.guardrails.completion import QUALITY, missing, rejection
from lopen.judge.judging import BoundaryVerdict
from lopen.tools.calls import ToolResult, done, refused
from lopen.tools.workbench import Workbench
from lopen.verification.runners import shown_output
from lopen.workflow import changes
from lopen.workflow.next_step import Trigger, enter_step
from lopen.workflow.session import CommitIntent, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import State, Task

TASK_VERDICT = "verify_task_completion"
VERIFY_AGAIN = "look at what changed, verify again, then complete"


def complete_task(bench: Workbench, task: Task) -> ToolResult:
    """Commit the task in progress and record it complete, or return the refusal.

    The commit holds the verified and judged tree, and lopen's own research notes.
    """
    verified = bench.project.verifier.tree()
    if lacking := missing("task", bench.project.verifier.commands, bench.fresh):
        subject = f"task {task.id}"
        answer = refused(rejection(subject, lacking), _why_missing(bench, lacking), missing=list(lacking))
        return false_claim(bench, f"{subject} is claimed complete without {', '.join(lacking)}", answer)
    if taken_over := _take_over(bench):
        return taken_over
    tree = bench.project.verifier.tree_with_own_files()
    refusal = _changed(bench, verified, tree) or _not_to_commit(bench.project.repository, tree)
    if refusal := refusal or _verify_commit(bench, verified):
        return refusal
    commit = _commit(bench, task, tree, _message(bench, task))
    _tell_left_out(bench)
    return replace(done(task_id=task.id, status="complete", commit=commit), recorded=True)


def complete_accepted(bench: Workbench) -> ToolResult | None:
    """Complete the task in progress if a person accepted its work and nothing changed since; None: a model goes on."""
    task = bench.session.task
    judged = bench.judge.accepted_by_person(task.id) if task is not None else None
    if task is None or judged is None or not judged.passed:
        return None
    note_verdict(bench, judged)
    answer = complete_task(bench, task)
    return answer if answer.recorded or answer.pause else None


def note_verdict(bench: Workbench, judged: BoundaryVerdict) -> None:
    """Note the verdict on the task in progress, and the results that lopen ran for it."""
    for result in judged.results:
        bench.evidence.note(result.tool, result.tree if result.passed else None)
    if judged.passed:
        bench.evidence.confidence = judged.verdict.confidence
    bench.evidence.note(TASK_VERDICT, bench.project.verifier.tree() if judged.passed else None)


def false_claim(bench: Workbench, what: str, answer: ToolResult) -> ToolResult:
    """Report a claimed completion that is refused; the conversation counts the turns with such claims."""
    bench.journal.tell(GuardrailRaised(QUALITY, "block", what, "refuses it and tells the model why"))
    return replace(answer, false_claim=True)


def _why_missing(bench: Workbench, lacking: Collection[str]) -> str:
    """Say why verifications do not count: the work tree changed, or they belong to an earlier iteration."""
    if stale := sorted(set(lacking) & bench.evidence.passed.keys()):
        return f"the work tree changed since {', '.join(stale)} passed"
    known = [tool for tool in lacking if (result := bench.project.verifier.fresh(tool)) and result.passed]
    if known:
        return f"{', '.join(known)} passed on this work tree, but in an earlier iteration: run what is missing, in this order"
    return "run them now, in this order"


def _take_over(bench: Workbench) -> ToolResult | None:
    """Take over the person's commits on the branch; refuse if they changed the work."""
    repository = bench.project.repository
    before = repository.head().commit
    if pause := bench.branch.sync():
        return replace(refused(pause.message), pause=pause)
    if repository.head().commit == before:
        return None
    return refused(
        "the person committed on the branch, and their commit is part of the work now",
        "look at what changed (git log -p -1), verify again, then complete",
    )


def _message(bench: Workbench, task: Task) -> str:
    owner = bench.session.tree.owner(task.id)
    return completion_message(
        module=bench.session.module,
        task=task.name,
        component=owner.name if owner else "",
        session=bench.session.id,
        task_id=task.id,
        verdict=f"passed ({bench.evidence.confidence})",
        convention=bench.settings.git.convention,
    )


def _changed(bench: Workbench, verified: str, tree: str) -> ToolResult | None:
    """Refuse a tree that differs from the verified one in more than lopen's own files."""
    own = bench.project.verifier.own_files
    between = bench.project.repository.changes(verified, tree) if tree != verified else ()
    changed = [c.path for c in between if c.path not in own]
    if not changed:
        return None
    what = f"the work tree changed while the task was being completed: {', '.join(changed[:10])}"
    return refused(what, VERIFY_AGAIN)


def _not_to_commit(repository: Repository, tree: str) -> ToolResult | None:
    """Refuse a commit that would add a secret, or settings of other tools or of lopen further down."""
    if leaks := repository.leaks(tree):
        first = leaks[0]
        return refused(
            f"{first} holds what looks like a secret ({first.kind}); not committed",
            "remove it, read it from the environment instead, then verify again",
        )
    if repository.changed_protected_paths:
        return refused(
            f"{', '.join(repository.changed_protected_paths[:5])}: the person's alone to write; not committed",
            "remove what was added there and put back what was changed (run_command), then complete",
        )
    return None


def _verify_commit(bench: Workbench, verified: str) -> ToolResult | None:
    """Run the specification's verify-commit; refuse where it fails or changes files."""
    result = bench.project.verifier.run("verify_commit")
    if result is None or (result.passed and result.tree == verified):
        return None
    said = "changed files" if result.passed else f"failed with exit code {result.exit_code}"
    return refused(
        f"verify-commit {said}",
        "fix it, verify again, then complete",
        output=shown_output(result.output, passed=False),
    )


def _commit(bench: Workbench, task: Task, tree: str, text: str) -> str:
    repository, branch = bench.project.repository, bench.session.branch
    parent = repository.head().commit
    assert parent is not None
    assert branch is not None
    bench.journal.save(changes.intend_commit(bench.session, CommitIntent(task.id, tree, parent, text)))
    sha = repository.commit(tree, parent, text, branch)
    bench.branch.publish()
    _record(bench, task, sha, Committed(sha, text.splitlines()[0], branch))
    return sha


def _tell_left_out(bench: Workbench) -> None:
    """Tell the person which written files the commit lacks."""
    if ignored := bench.evidence.ignored:
        listed = ", ".join(sorted(ignored)[:10])
        bench.journal.tell(
            Notice("warning", f"written, but ignored by git and so in no commit: {listed} (see .gitignore)")
        )


def _record(bench: Workbench, task: Task, commit: str, *events: Committed) -> None:
    """Record the task as complete, in one transaction with its events."""
    session = bench.session
    decision = completed(session, task, commit)
    owner = session.tree.owner(task.id)
    told = TaskChanged(task.id, task.name, owner.name if owner else "", State.COMPLETE.value)
    bench.journal.save(decision, *events, told)


def completed(session: Session, task: Task, commit: str) -> Session:
    """Return the session with the task complete; its failures are forgotten, its commit kept."""
    session = changes.complete_task(session, task, commit)
    owner = session.tree.owner(task.id)
    if session.step is Step.ITERATE_THROUGH_TASKS and owner is not None and owner.open_tasks:
        return enter_step(session, Trigger.TASK_ITERATION_COMPLETE).session
    return session


def adopt(session: Session, repository: Repository) -> tuple[Session, tuple[Committed | TaskChanged, ...]]:
    """Take in a commit whose record is missing, if it is exactly the intended one. Only read the repository: its
    index is older than the commit.
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
