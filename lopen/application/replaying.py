"""Driving a recorded session again: the same answers, the same interruptions, the same words of the person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lopen.application.run_options import ResumeOptions
from lopen.application.scratch_clone import Scratch
from lopen.application.wiring import wired
from lopen.base.errors import LopenError
from lopen.base.events import QuestionAsked, Recorded
from lopen.llm.replay import BrokenOff, RecordingEnded, ReplayModel
from lopen.loop.context import SessionContext
from lopen.loop.model_calls import ModelCalls
from lopen.loop.run import drive, pause
from lopen.loop.startup import start
from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded
from lopen.workflow.pauses import interrupted_pause
from lopen.workflow.session import Session


class WaitsOtherwise(LopenError):
    """The rebuilt session waits for a person where the recorded one went on."""


class RecordedPerson:
    """Answers the model's questions as they were answered then; None where nobody did at that moment."""

    def __init__(self, history: Iterable[Recorded]) -> None:
        self._asked = [r.event for r in history if isinstance(r.event, QuestionAsked) and not r.event.assumed]

    def ask(self, question: str, options: tuple[str, ...], default: str) -> str | None:
        """The next recorded answer to this question.

        Where the history has none (it was moved out), the default stands in for it: what it was makes no difference
        to a model whose answers are recorded.
        """
        event = next((e for e in self._asked if e.question == question), None)
        if event is None:
            return default
        self._asked.remove(event)
        return event.answer or None


def rebuilt(
    scratch: Scratch, loaded: Loaded, options: ResumeOptions, recorded: Session, history: tuple[Recorded, ...]
) -> Session:
    """The session as it ends this time. Where the recording ends with the work unfinished, that is its end too.

    Raises:
        ReplayMismatch: a request does not fit the recording.
        WaitsOtherwise: it pauses where the recorded session did not.
    """
    loaded = replace(loaded, settings=for_nothing(loaded.settings))
    with wired(
        scratch.context, loaded, scratch.store, scratch.session, options, person=RecordedPerson(history)
    ) as run:
        calls = run.loop.models.calls
        assert isinstance(calls, ModelCalls)
        model = calls.model
        assert isinstance(model, ReplayModel)
        resumed = False
        while True:
            left = model.left
            session = _driven(run.loop, recorded, resumed=resumed)
            if session.finished or not model.left:
                return session
            if resumed and model.left == left:  # no answer was asked for: what it waits for is not lifted
                raise _otherwise(session)
            _confirm(run.loop)
            resumed = True


def for_nothing(settings: Settings) -> Settings:
    """A replay costs nothing: no budget holds it, and no shared store hears of it. All other guards stay."""
    budget = settings.budget.model_copy(update={"enabled": False, "store": "sqlite"})
    return settings.model_copy(update={"budget": budget})


def _driven(loop: SessionContext, recorded: Session, *, resumed: bool) -> Session:
    """Drive until the session ends or waits."""
    try:
        waits = start(loop, resumed=resumed)
        return pause(loop, waits) if waits else drive(loop)
    except BrokenOff:
        return pause(loop, interrupted_pause(loop.record.journal.reload()))
    except RecordingEnded:
        if recorded.finished:
            raise
        return pause(loop, interrupted_pause(loop.record.journal.reload()))


def _confirm(loop: SessionContext) -> None:
    """The recorded session went on from here, so its person confirmed what it waited for."""
    session = loop.record.journal.session
    why = session.pause
    if why is not None and why.subject:
        loop.record.journal.change(confirmed={**session.confirmed, why.subject: why.level}, pause=None)


def _otherwise(session: Session) -> WaitsOtherwise:
    said = f"{session.pause.kind}: {session.pause.message}" if session.pause else session.status
    return WaitsOtherwise(
        f"the rebuilt session waits where the recorded one went on ({said})",
        hint="what a person did then is not in the recording",
    )
