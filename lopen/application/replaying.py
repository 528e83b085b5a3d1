"""Rebuild a session in a scratch clone from its recorded answers and interruptions, and compare the trees.

A replay begins where the recording begins: with the draft of step 1, or behind the gate. A person's acts are taken
from the recording: where it goes on in step 1, a draft was asked for; where it goes on behind it, the specification
was approved; where it goes on after another pause, that was confirmed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.application.command_context import CommandContext, ResumeOptions, RunOptions
from lopen.application.decisions import specification
from lopen.application.open_store import one_session, open_store
from lopen.application.wiring import StandIns, wired
from lopen.application.workplaces import person_repository, recording_path, temporary_workplace
from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError
from lopen.core.events import QuestionAsked, Recorded, SessionPaused
from lopen.git.clones import clone_repository
from lopen.git.repository import Repository
from lopen.git.trees import TreeChange
from lopen.loop.context import NoApprover, RunRequest, SessionContext, TaskIds
from lopen.loop.run import drive, pause
from lopen.loop.startup import start
from lopen.models.replay import RecordingEnded, RecordingInterrupted, ReplayModel
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.specification.drift import spec_hash
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.pauses import BudgetThreshold, Confirmation, Question, interrupted
from lopen.workflow.session import Session
from lopen.workflow.steps import Step


class ReplayDiverged(LopenError):
    """The rebuilt session pauses where the recorded one continued."""


@dataclass(frozen=True)
class Comparison:
    """The trees of the recorded and the rebuilt session, and their differences outside of `.lopen/`."""

    session: str
    recorded: str
    rebuilt: str
    changes: tuple[TreeChange, ...]


def replay_session(context: CommandContext, wanted: str, options: RunOptions) -> Comparison:
    """Rebuild a session in a scratch clone and compare the trees.

    Raises:
        LopenError: there is no recording, or nothing to compare.
        ReplayMismatch: a request differs from the recording.
        ReplayDiverged: the session pauses where the recorded one continued.
    """
    store, clock = open_store(context), SystemClock()
    found = one_session(context, store, wanted)
    recording = recording_path(context.root, found.id)
    if not recording.exists():
        raise LopenError(
            f"{found.id} has no recording",
            hint="workflow.record is false, the answers were replayed, or a cleanup deleted it",
        )
    options = replace(options, model=f"replay:{recording}")
    settings = _without_budget(context.load(options.flags()).settings)
    with tempfile.TemporaryDirectory(prefix="lopen-replay-") as folder:
        repository = person_repository(context.root, settings, clock, KnownSecrets(context.root, os.environ))
        scratch = stage(context, store, found, repository, Path(folder).resolve())
        recorded = _last_tree(repository, found)
        result = rebuilt(scratch, settings, options, found, tuple(store.events(found.id)))
        copy = scratch.repository
        now = _last_tree(copy, result)
        changed = (each for each in copy.changes(recorded, now) if not each.path.startswith(".lopen/"))
        return Comparison(found.id, recorded, now, tuple(changed))


def _last_tree(repository: Repository, session: Session) -> str:
    """Return the tree of the session's last commit; raise `LopenError` if it has none."""
    branch = session.branch or ""
    within = branch if branch and repository.branch_tip(branch) else "HEAD"
    commits = repository.session_commits(session.id, within=within)
    if not commits:
        raise LopenError(f"{session.id} has no commit to compare with", hint="it did not complete a task")
    return commits[-1].tree


@dataclass(frozen=True)
class Scratch:
    """The clone in which a session is rebuilt, its first state, and the person's approval of the specification."""

    context: CommandContext
    store: SessionStore
    session: Session
    repository: Repository
    approve: Callable[[], None]


def stage(
    context: CommandContext, store: SessionStore, session: Session, repository: Repository, folder: Path
) -> Scratch:
    """Clone the project into the empty `folder` as it was before the specification of `session` was committed.

    Raises:
        LopenError: the session was never approved, or its first commit is missing.
    """
    approval = session.approval
    if approval is None or session.start_commit is None:
        raise LopenError(
            f"{session.id} was never approved: it has nothing to rebuild",
            hint=f"lopen status {session.module} shows its state",
        )
    approved = next(iter(repository.session_commits(session.id, within=session.start_commit)), None)
    base = approved.parent if approved else session.start_commit
    if base is None:
        raise LopenError(
            f"{session.id} started in a repository without a commit, which cannot be cloned",
            hint="replay a session that started after the first commit",
        )
    copy = clone_repository(
        context.root, folder, commit=base, branch=session.start_branch or "main", clock=SystemClock()
    )
    clone_context = replace(context, root=folder)
    own_store = open_store(clone_context, new=True)
    _copy_history(store, own_store, session)

    def approve() -> None:
        """Put the specification there as it was approved, and approve it."""
        folder_of_spec = f"specs/{session.module}/"
        if approved:
            changed = (c.path for c in copy.changes(copy.tree_of(base), approved.tree))
            copy.restore(approved.tree, [path for path in changed if path.startswith(folder_of_spec)])
        else:
            shutil.copytree(context.root / folder_of_spec, folder / folder_of_spec, dirs_exist_ok=True)
        if spec_hash(specification(folder, own_store, session.module).outline) != approval.spec_hash:
            raise LopenError(
                "the session's first specification differs from the one approved last",
                hint="the specification changed while the session ran; such a session cannot be replayed",
            )
        own_store.approve(session.module, approval)

    first = Session(session.id, session.module, session.created_at)
    return Scratch(clone_context, own_store, first, copy, approve)


def _copy_history(source: SessionStore, target: SessionStore, session: Session) -> None:
    """Copy the criterion ids and the earlier sessions, from which task ids continue."""
    module = session.module
    target.remember_criteria(module, {i: text for text, i in source.known_criteria(module).items()})
    for other in source.ids(module=module):
        earlier = source.load(other)
        if earlier.created_at < session.created_at:
            target.save(earlier, earlier.created_at)


class RecordedPerson:
    """Answers the model's questions as recorded."""

    def __init__(self, history: Iterable[Recorded]) -> None:
        self._asked: list[QuestionAsked] = []
        ended = True  # the run, after the last question
        for event in (recorded.event for recorded in history):
            if isinstance(event, QuestionAsked) and not event.assumed:
                if not ended and not self._asked[-1].answer and self._asked[-1].question == event.question:
                    self._asked.pop()  # that is its answer
                self._asked.append(event)
                ended = False
            ended = ended or isinstance(event, SessionPaused)

    def ask(self, question: Question, settled: Callable[[], bool]) -> str | None:
        """Return the next recorded answer to this question, None if nobody answered it at that moment.

        A question that the history lacks (older rows are archived) gets its default: the recorded model answers
        do not depend on it.
        """
        event = next((e for e in self._asked if e.question == question.text), None)
        if event is None:
            return question.default
        self._asked.remove(event)
        return event.answer or None


def rebuilt(
    scratch: Scratch,
    settings: Settings,
    options: ResumeOptions,
    recorded: Session,
    history: tuple[Recorded, ...],
) -> Session:
    """Drive the recorded session again and return it; it also ends where the recording ends unfinished."""
    context, root = scratch.context, scratch.context.root
    with temporary_workplace(root, settings, KnownSecrets(root, os.environ)) as place:
        stand_ins = StandIns(place, RecordedPerson(history))
        with wired(context, settings, scratch.store, scratch.session, options, stand_ins=stand_ins) as loop:
            loop = replace(loop, people=replace(loop.people, approver=NoApprover()))
            return _replay(loop, scratch, recorded)


def _replay(loop: SessionContext, scratch: Scratch, recorded: Session) -> Session:
    """Drive the session on over each pause where a person let the recorded one go on."""
    model = loop.models.calls.model
    assert isinstance(model, ReplayModel)
    resumed = False
    while True:
        loop = _let_go_on(loop, scratch, drafts=model.next_step == Step.DRAFT_SPECIFICATION)
        unplayed = model.left
        session = _drive(loop, recorded, resumed=resumed)
        if session.finished or not model.left:
            return session
        if resumed and model.left == unplayed:  # no request since the resume: the same pause again
            raise _diverged(session)
        resumed = True


def _without_budget(settings: Settings) -> Settings:
    """Return the settings without budgets and shared stores: a replay costs nothing. Other guards stay."""
    budget = settings.budget.model_copy(update={"enabled": False, "store": "sqlite"})
    return settings.model_copy(update={"budget": budget})


def _drive(loop: SessionContext, recorded: Session, *, resumed: bool) -> Session:
    """Drive until the session ends or pauses."""
    try:
        reason = start(loop, resumed=resumed)
        return pause(loop, reason) if reason else drive(loop)
    except RecordingInterrupted:
        return pause(loop, interrupted(loop.record.journal.reload().id))
    except RecordingEnded:
        if recorded.finished:
            raise
        return pause(loop, interrupted(loop.record.journal.reload().id))


def _let_go_on(loop: SessionContext, scratch: Scratch, *, drafts: bool) -> SessionContext:
    """Do what a person did before the recorded session went on: ask for a draft, approve, or confirm."""
    session = loop.record.journal.session
    if session.approval is None and not drafts:
        scratch.approve()
    if isinstance(session.pause, Confirmation):
        if isinstance(session.pause.reason, BudgetThreshold):
            loop.guards.meter.confirm()
        loop.record.journal.save(changes.confirm_pause(session))
    asked = RunRequest(draft=drafts, iterations_before=session.limits.iterations)
    ids = TaskIds(scratch.store, loop.record.journal)  # of another process, as in the recorded session
    return replace(loop, asked=asked, record=replace(loop.record, new_task_id=ids))


def _diverged(session: Session) -> ReplayDiverged:
    state = f"{session.pause.kind}: {session.pause.message}" if session.pause else session.status
    return ReplayDiverged(
        f"the replay pauses where the recorded session continued ({state})",
        hint="the recording does not contain what a person did at that point",
    )
