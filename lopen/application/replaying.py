"""Replaying a session in a scratch clone, with the recorded answers and interruptions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from lopen.application.run_options import ResumeOptions
from lopen.application.scratch_clone import Scratch
from lopen.application.wiring import wired
from lopen.application.workplaces import temporary_workplace
from lopen.core.errors import LopenError
from lopen.core.events import QuestionAsked, Recorded
from lopen.loop.context import SessionContext
from lopen.loop.model_calls import ModelCalls
from lopen.loop.run import drive, pause
from lopen.loop.startup import start
from lopen.models.replay import RecordingEnded, RecordingInterrupted, ReplayModel
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded
from lopen.workflow import changes
from lopen.workflow.pauses import BudgetThreshold, Confirmation, Interrupted
from lopen.workflow.session import Session


class ReplayDiverged(LopenError):
    """The rebuilt session pauses where the recorded one continued."""


class RecordedPerson:
    """Answers the model's questions as recorded."""

    def __init__(self, history: Iterable[Recorded]) -> None:
        self._asked = [r.event for r in history if isinstance(r.event, QuestionAsked) and not r.event.assumed]

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        """Return the next recorded answer to this question, None if nobody answered it at that moment.

        A question that the history lacks (older rows are archived) gets its default: the recorded model answers
        do not depend on it.
        """
        event = next((e for e in self._asked if e.question == question), None)
        if event is None:
            return default
        self._asked.remove(event)
        return event.answer or None


def rebuilt(
    scratch: Scratch, loaded: Loaded, options: ResumeOptions, recorded: Session, history: tuple[Recorded, ...]
) -> Session:
    """Drive the recorded session again and return it; it also ends where the recording ends unfinished.

    Raises:
        ReplayMismatch: a request differs from the recording.
        ReplayDiverged: the session pauses where the recorded one continued.
    """
    loaded = replace(loaded, settings=without_budget(loaded.settings))
    person, root = RecordedPerson(history), scratch.context.root
    with (
        temporary_workplace(root, loaded.settings, KnownSecrets(root, os.environ)) as place,
        wired(
            scratch.context, loaded, scratch.store, scratch.session, options, person=person, place=place
        ) as run,
    ):
        calls = run.loop.models.calls
        assert isinstance(calls, ModelCalls)
        model = calls.model
        assert isinstance(model, ReplayModel)
        resumed = False
        while True:
            unplayed = model.left
            session = _drive(run.loop, recorded, resumed=resumed)
            if session.finished or not model.left:
                return session
            if resumed and model.left == unplayed:  # no request since the resume: the same pause again
                raise _diverged(session)
            _confirm(run.loop)
            resumed = True


def without_budget(settings: Settings) -> Settings:
    """Return the settings without budgets and shared stores: a replay costs nothing. Other guards stay."""
    budget = settings.budget.model_copy(update={"enabled": False, "store": "sqlite"})
    return settings.model_copy(update={"budget": budget})


def _drive(loop: SessionContext, recorded: Session, *, resumed: bool) -> Session:
    """Drive until the session ends or pauses."""
    try:
        reason = start(loop, resumed=resumed)
        return pause(loop, reason) if reason else drive(loop)
    except RecordingInterrupted:
        return pause(loop, Interrupted(loop.record.journal.reload().id))
    except RecordingEnded:
        if recorded.finished:
            raise
        return pause(loop, Interrupted(loop.record.journal.reload().id))


def _confirm(loop: SessionContext) -> None:
    """Confirm the pause: the recorded session continued here, so a person confirmed it."""
    session = loop.record.journal.session
    if isinstance(session.pause, Confirmation):
        if isinstance(session.pause.reason, BudgetThreshold):
            loop.guards.meter.confirm()
        loop.record.journal.save(changes.confirm_pause(session))


def _diverged(session: Session) -> ReplayDiverged:
    state = f"{session.pause.kind}: {session.pause.message}" if session.pause else session.status
    return ReplayDiverged(
        f"the replay pauses where the recorded session continued ({state})",
        hint="the recording does not contain what a person did at that point",
    )
