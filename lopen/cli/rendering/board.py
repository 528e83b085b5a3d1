"""What the live view knows: a value that events change (pure), and what it is told beside them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from lopen.base import events as e
from lopen.cli.rendering.plain import line
from lopen.workflow.task_tree import TaskTree

TAIL_CHARACTERS = 400  # of the text that streams in
WARNINGS = 3


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The session as it stands: its tree, its totals, its limits (0: none). None: count the events' own."""

    tree: TaskTree = field(default_factory=TaskTree)
    tokens: int | None = None
    token_limit: int = 0
    cost_usd: float | None = None
    cost_limit_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Board:
    """The state of the view after some events."""

    started: datetime | None = None
    module: str = ""
    phase: str = ""
    step: str = ""
    number: int = 0
    iteration: int = 0
    model: str = ""
    doing: str = ""
    doing_since: datetime | None = None
    text: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False
    warnings: tuple[str, ...] = ()

    def after(self, recorded: e.Recorded) -> Board:
        """The board once `recorded` has happened."""
        board = replace(self, started=self.started or recorded.ts)
        board = board._course(recorded.event)._warned(recorded.event)
        doing = _doing(recorded.event)
        if doing is None:
            return board
        return replace(board, doing=doing, doing_since=recorded.ts if doing else None)

    def _course(self, event: e.Event) -> Board:
        match event:
            case e.SessionStarted():
                return replace(self, module=event.module, step=event.step)
            case e.StepEntered():
                return replace(self, phase=event.phase, step=event.step, number=event.number)
            case e.IterationStarted():
                return replace(self, iteration=event.iteration, step=event.step, model=event.model, text="")
            case e.TurnStarted():
                return replace(self, model=event.model, text="")
            case e.ModelText():
                return replace(self, text=(self.text + event.text)[-TAIL_CHARACTERS:])
            case e.TurnEnded():
                billed = event.input_tokens + event.output_tokens + event.cache_write_tokens
                return replace(
                    self,
                    text="",
                    tokens=self.tokens + billed + round(event.cache_read_tokens / 10),
                    cost_usd=self.cost_usd + (event.cost_usd or 0.0),
                    unpriced=self.unpriced or event.cost_usd is None,
                )
            case _:
                return self

    def _warned(self, event: e.Event) -> Board:
        if not is_warning(event):
            return self
        return replace(self, warnings=(*self.warnings, line(event) or "")[-WARNINGS:])


def is_warning(event: e.Event) -> bool:
    """Whether it stays in sight for a while."""
    if isinstance(event, e.Notice):
        return event.level != "info"
    return isinstance(event, e.GuardrailRaised | e.AlertRaised | e.DriftFound)


def _doing(event: e.Event) -> str | None:
    """What is going on from this event on; empty: nothing; None: as before."""
    match event:
        case e.TurnStarted():
            return f"waiting for {event.model}"
        case e.ModelText():
            return None
        case e.ToolStarted():
            return f"{event.tool} {event.summary}".strip()
        case e.ModelRetry() | e.Waiting() | e.QuestionAsked() | e.ProgressReported():
            return line(event)
        case e.TurnEnded() | e.ToolEnded() | e.IterationEnded():
            return ""
        case e.SessionPaused() | e.SessionFailed() | e.SessionComplete():
            return ""
        case _:
            return None
