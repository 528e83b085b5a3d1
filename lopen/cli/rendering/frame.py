"""The picture of the live view: events change a board; a board and a snapshot become lines of styled text. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rich.text import Text

from lopen.base import events as e
from lopen.base.escape import clipped
from lopen.base.money import dollars
from lopen.cli.rendering.lines import MARKS, line, step_title
from lopen.workflow.task_tree import Component, State, Task, TaskTree

TAIL_CHARACTERS = 400  # of streamed text
WARNINGS = 3
ASCII_MARKS = {State.PENDING: "o", State.IN_PROGRESS: ">", State.COMPLETE: "+", State.FAILED: "x"}
STYLES = {State.PENDING: "dim", State.IN_PROGRESS: "bold cyan", State.COMPLETE: "green", State.FAILED: "red"}
BAR_WIDTH = 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tree, totals and limits of the session. A limit of 0 is no limit; a total of None is counted from events."""

    tree: TaskTree = field(default_factory=TaskTree)
    tokens: int | None = None
    token_limit: int = 0
    cost_usd: float | None = None
    cost_limit_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Board:
    """State of the live view after a number of events."""

    started: datetime | None = None
    module: str = ""
    phase: str = ""
    step: str = ""
    number: int = 0
    iteration: int = 0
    model: str = ""
    activity: str = ""
    activity_start: datetime | None = None
    text: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False
    warnings: tuple[str, ...] = ()

    def after(self, recorded: e.Recorded) -> Board:
        """Return the board after `recorded`."""
        board = replace(self, started=self.started or recorded.ts)
        board = board._with_progress(recorded.event)._with_warning(recorded.event)
        activity = _activity(recorded.event)
        if activity is None:
            return board
        return replace(board, activity=activity, activity_start=recorded.ts if activity else None)

    def _with_progress(self, event: e.Event) -> Board:
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

    def _with_warning(self, event: e.Event) -> Board:
        if not is_warning(event):
            return self
        return replace(self, warnings=(*self.warnings, line(event) or "")[-WARNINGS:])


def is_warning(event: e.Event) -> bool:
    """True for an event that the live view shows below the tree for a while."""
    if isinstance(event, e.Notice):
        return event.level != "info"
    return isinstance(event, e.GuardrailRaised | e.AlertRaised | e.DriftFound)


def _activity(event: e.Event) -> str | None:
    """Return the activity that the event begins; "" if it ends one, None if it changes nothing."""
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


def frame(
    board: Board, snapshot: Snapshot, *, width: int, height: int, now: datetime, ascii_only: bool = False
) -> list[Text]:
    """Return the lines of the picture, top to bottom.

    Foreign text enters through `clipped` as `Text`, never as markup. Of a tree that is too high, the lines around
    the task in progress are shown.
    """
    head = [_title(board, width, now)]
    foot = [*_current(board, width, now), _meter(board, snapshot, width, ascii_only)]
    foot += [Text(clipped(f"! {w}", width), "yellow") for w in board.warnings]
    room = max(1, height - len(head) - len(foot) - 1)
    lines = [*head, *_tree(snapshot.tree, width, room, ASCII_MARKS if ascii_only else MARKS), *foot]
    if ascii_only:
        for text in lines:
            text.plain = text.plain.encode("ascii", "replace").decode()
    return lines


def _title(board: Board, width: int, now: datetime) -> Text:
    parts = [board.module or "lopen"]
    if board.step:
        parts.append(step_title(board.step))
    if board.iteration:
        parts.append(f"iteration {board.iteration}")
    if board.phase:
        parts.insert(1, board.phase.replace("_", " "))
        if len(", ".join(parts)) > width:  # the step implies the phase
            del parts[1]
    if board.started:
        parts.append(_elapsed(now - board.started))
    return Text(clipped(", ".join(parts), width), "bold")


def _elapsed(span: timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _current(board: Board, width: int, now: datetime) -> list[Text]:
    lines = []
    if board.activity:
        seconds = int((now - board.activity_start).total_seconds()) if board.activity_start else 0
        span = f" ({seconds} s)" if seconds > 0 else ""
        lines.append(Text(clipped(board.activity, width - len(span)) + span, "cyan"))
    tail = board.text.rstrip().rsplit("\n", 1)[-1]
    if tail.strip():
        lines.append(Text(clipped(tail[-(width - 2) :], width), "italic"))
    return lines


def _meter(board: Board, snapshot: Snapshot, width: int, ascii_only: bool) -> Text:
    tokens = board.tokens if snapshot.tokens is None else snapshot.tokens
    cost = board.cost_usd if snapshot.cost_usd is None else snapshot.cost_usd
    parts = [f"{tokens:,}{f' of {snapshot.token_limit:,}' if snapshot.token_limit else ''} tokens"]
    ceiling = f" of {dollars(snapshot.cost_limit_usd, 4)}" if snapshot.cost_limit_usd else ""
    parts.append(f"{dollars(cost, 4)}{'+' if board.unpriced else ''}{ceiling}")
    if board.model:
        parts.append(board.model)
    text = Text()
    if snapshot.token_limit and width >= BAR_WIDTH + 30:
        share = min(1.0, tokens / snapshot.token_limit)
        filled = round(share * BAR_WIDTH)
        full, empty = ("#", "-") if ascii_only else ("█", "░")
        text.append(full * filled + empty * (BAR_WIDTH - filled), _share_style(share))
        text.append(f" {share:.0%} ")
    text.append(clipped(", ".join(parts), width - len(text)))
    return text


def _share_style(share: float) -> str:
    return "red" if share >= 0.9 else "yellow" if share >= 0.8 else "green"


def _tree(tree: TaskTree, width: int, room: int, marks: dict[State, str]) -> list[Text]:
    lines: list[tuple[bool, Text]] = []
    for component in tree.components:
        lines.append((False, _component(component, width, marks)))
        if component.state is not State.COMPLETE:
            lines += [(t.state is State.IN_PROGRESS, _task(t, width, marks)) for t in component.tasks]
    return _window(lines, room)


def _window(lines: list[tuple[bool, Text]], room: int) -> list[Text]:
    """Return at most `room` lines around the active one; a cut end says how many lines are missing."""
    if len(lines) <= room:
        return [text for _, text in lines]
    active = next((at for at, (is_active, _) in enumerate(lines) if is_active), 0)
    first = min(max(0, active - room // 2), len(lines) - room)
    shown = [text for _, text in lines[first : first + room]]
    if first and room > 2:
        shown[0] = Text(f"  … {first + 1} more above", "dim")
    below = len(lines) - first - room
    if below and room > 2:
        shown[-1] = Text(f"  … {below + 1} more below", "dim")
    return shown


def _component(component: Component, width: int, marks: dict[State, str]) -> Text:
    done = sum(t.state is State.COMPLETE for t in component.tasks)
    count = f" {done}/{len(component.tasks)}" if component.tasks else ""
    state = component.state
    return Text(f"{marks[state]} {clipped(component.name, width - 2 - len(count))}{count}", STYLES[state])


def _task(task: Task, width: int, marks: dict[State, str]) -> Text:
    given_up = " (skipped)" if task.given_up else ""
    label = clipped(f"{task.id} {task.name}", max(4, width - 4 - len(given_up)))
    return Text(f"  {marks[task.state]} {label}{given_up}", STYLES[task.state])
