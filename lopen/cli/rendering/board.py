"""The state of the live view after a number of events. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from lopen.cli.rendering.lines import line, test_counts
from lopen.core import events as e
from lopen.workflow.task_tree import State

TAIL_CHARACTERS = 400  # of streamed text and of a tool's input
_PLACE = re.compile(r'"(?:path|file_path|command|pattern)"\s*:\s*"((?:[^"\\]|\\.)+)"')


@dataclass(frozen=True, slots=True)
class Streamed:
    """The part of the answer that the model is writing: text, or the input of `tool`."""

    tool: str = ""
    characters: int = 0
    head: str = ""  # of the input: it names the file or the command
    tail: str = ""

    def plus(self, text: str, tool: str) -> Streamed:
        """Return the part with `text` added; a new part if another tool's input, or another input, begins."""
        another = tool != self.tool or (tool and self.tail.endswith("}") and text.startswith("{"))
        before = Streamed(tool) if another else self
        return Streamed(
            tool,
            before.characters + len(text),
            (before.head + text)[:TAIL_CHARACTERS],
            (before.tail + text)[-TAIL_CHARACTERS:],
        )

    def __str__(self) -> str:
        """Return what is written, as far as it is known: "writing write_file a.py, 1,200 characters"."""
        found = _PLACE.search(self.head) if self.tool else None
        named = " ".join(part for part in (self.tool or "text", found[1] if found else "") if part)
        return f"writing {named}, {self.characters:,} characters"


@dataclass(frozen=True, slots=True)
class Board:
    """State of the live view after a number of events."""

    started: datetime | None = None
    module: str = ""
    step: str = ""
    iteration: int = 0
    model: str = ""
    activity: str = ""
    activity_start: datetime | None = None
    streamed: Streamed = Streamed()
    tests: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False
    task: str = ""
    task_start: datetime | None = None
    task_seconds: tuple[float, ...] = ()  # of the tasks that were completed while this view was open

    def after(self, recorded: e.Recorded) -> Board:
        """Return the board after `recorded`."""
        if isinstance(recorded.event, e.ModelText | e.ModelInput):  # thousands a second
            tool = recorded.event.tool if isinstance(recorded.event, e.ModelInput) else ""
            return replace(self, streamed=self.streamed.plus(recorded.event.text, tool))
        board = replace(self, started=self.started or recorded.ts)
        board = board._with_progress(recorded.event)._with_task(recorded)
        activity = _activity(recorded.event)
        if activity is None:
            return board
        return replace(board, activity=activity, activity_start=recorded.ts if activity else None)

    def _with_progress(self, event: e.Event) -> Board:
        match event:
            case e.SessionStarted():
                return replace(self, module=event.module, step=event.step)
            case e.StepEntered():
                return replace(self, step=event.step)
            case e.IterationStarted():
                return replace(self, iteration=event.iteration, step=event.step, model=event.model)
            case e.TurnStarted():
                return replace(self, model=event.model, streamed=Streamed())
            case e.VerificationRan(tool="verify_tests"):
                return replace(self, tests=test_counts(event.output) or self.tests)
            case e.TurnEnded():
                billed = event.input_tokens + event.output_tokens + event.cache_write_tokens
                return replace(
                    self,
                    streamed=Streamed(),
                    tokens=self.tokens + billed + round(event.cache_read_tokens / 10),
                    cost_usd=self.cost_usd + (event.cost_usd or 0.0),
                    unpriced=self.unpriced or event.cost_usd is None,
                )
            case _:
                return self

    def _with_task(self, recorded: e.Recorded) -> Board:
        match recorded.event:
            case e.TaskChanged(task=task, state=State.IN_PROGRESS.value) if task != self.task:
                return replace(self, task=task, task_start=recorded.ts)
            case e.TaskChanged(task=task, state=State.COMPLETE.value) if task == self.task:
                took = (recorded.ts - (self.task_start or recorded.ts)).total_seconds()
                return replace(self, task="", task_start=None, task_seconds=(*self.task_seconds, took))
            case _:
                return self


def _activity(event: e.Event) -> str | None:
    """Return the activity that the event begins; "" if it ends one, None if it changes nothing."""
    match event:
        case e.TurnStarted():
            return f"waiting for {event.model}"
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
