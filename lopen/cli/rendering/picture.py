"""The picture of the live view: events become a board, a board and a snapshot become lines of styled text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from lopen.cli.rendering.lines import MARKS, STEP_TITLES, line, step_title, test_counts
from lopen.core import events as e
from lopen.core.escape import clipped
from lopen.core.money import dollars
from lopen.limits.budget import BudgetState
from lopen.workflow.steps import Step, phase_of
from lopen.workflow.task_tree import Component, State, Task, TaskTree, progress

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


HIGHEST = 14  # lines: a narrower window wraps them, and what then leaves the screen stays in the scrollback
TIMED_TASKS = 2  # before that, a remaining time would be guessed
ASCII_MARKS = {State.PENDING: "o", State.IN_PROGRESS: ">", State.COMPLETE: "+", State.FAILED: "x"}
STYLES = {State.PENDING: "dim", State.IN_PROGRESS: "bold cyan", State.COMPLETE: "green", State.FAILED: "red"}
_STYLES: dict[type[e.Event], str] = {
    e.IterationEnded: "yellow",
    e.Committed: "green",
    e.ComponentComplete: "green",
    e.SessionComplete: "bold green",
    e.SessionFailed: "bold red",
    e.SessionPaused: "bold yellow",
    e.StepEntered: "bold",
    e.GuardrailRaised: "yellow",
    e.AlertRaised: "yellow",
    e.DriftFound: "yellow",
    e.ModelRetry: "yellow",
    e.ModelFallback: "yellow",
}


class Styled(NamedTuple):
    """One line of text and its style: words such as "bold green", "" for none."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tree, totals and limits of the session. A limit of 0 means no limit; a total of None is counted from events."""

    tree: TaskTree = field(default_factory=TaskTree)
    tokens: int | None = None
    token_limit: int = 0
    cost_usd: float | None = None
    cost_limit_usd: float = 0.0


def snapshot_of(tree: TaskTree, budgets: Iterable[BudgetState] = (), cost_limit_usd: float = 0.0) -> Snapshot:
    """Return the snapshot of a session: its tree, and what it has spent of its own budget."""
    state = next((b for b in budgets if b.budget_type == "session"), None)
    if state is None:
        return Snapshot(tree, cost_limit_usd=cost_limit_usd)
    return Snapshot(tree, state.tokens_used, state.max_tokens, state.cost_usd, cost_limit_usd)


def frame(
    board: Board,
    snapshot: Snapshot,
    *,
    width: int,
    height: int,
    now: datetime,
    ascii_only: bool = False,
    keys: str = "",
) -> list[Styled]:
    """Return the lines of the picture, top to bottom; none is wider than `width`.

    Foreign text enters through `clipped`. Of a tree that is too high, the lines around the task in progress are shown.
    """
    rule = Styled(("-" if ascii_only else "─") * max(1, width - 1), "dim")
    foot = [*_current(board, width, now), *_progress(board, snapshot, width), _meter(board, snapshot, width)]
    if keys:
        foot.append(Styled(clipped(keys, width), "dim"))
    height = min(height, HIGHEST)
    room = max(1, height - len(foot) - 2)
    tree = _tree(snapshot.tree, width, room, ASCII_MARKS if ascii_only else MARKS)
    lines = [rule, _title(board, width, now), *tree, *foot]
    while len(lines) > max(1, height):  # the last line says what is going on
        del lines[0]
    if ascii_only:
        return [Styled(text.encode("ascii", "replace").decode(), style) for text, style in lines]
    return lines


def _title(board: Board, width: int, now: datetime) -> Styled:
    parts = [board.module or "lopen"]
    if board.step:
        parts.append(step_title(board.step))
    if board.started:
        parts.append(_elapsed(now - board.started))
    phase = phase_of(Step(board.step)).replace("_", " ") if board.step in STEP_TITLES else ""
    iteration = f"iteration {board.iteration}" if board.iteration else ""
    for at, part in ((1, phase), (-1, iteration)):  # left out where there is no room
        if part and len(", ".join((*parts, part))) <= width:
            parts.insert(at, part)
    return Styled(clipped(", ".join(parts), width), "bold")


def _elapsed(span: timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _current(board: Board, width: int, now: datetime) -> list[Styled]:
    activity = str(board.streamed) if board.streamed.characters else board.activity
    if not activity:
        return []
    seconds = int((now - board.activity_start).total_seconds()) if board.activity_start else 0
    span = f" ({seconds} s)" if seconds > 0 else ""
    lines = [Styled(clipped(activity, width - len(span)) + span, "cyan")]
    tail = "" if board.streamed.tool else board.streamed.tail.rstrip().rsplit("\n", 1)[-1]
    if tail.strip():
        lines.append(Styled(clipped(tail[-(width - 2) :], width), "italic"))
    return lines


def _progress(board: Board, snapshot: Snapshot, width: int) -> list[Styled]:
    done = progress(snapshot.tree)
    parts = [f"{done.tasks_done} of {done.tasks} tasks done"] if done.tasks else []
    if left := remaining(board.task_seconds, snapshot.tree):
        parts.append(left)
    if board.tests:
        parts.append(f"last test run: {board.tests}")
    return [Styled(clipped(", ".join(parts), width))] if parts else []


def remaining(task_seconds: tuple[float, ...], tree: TaskTree) -> str:
    """Return a range for the time that the open tasks take, from those that are done; "" before it is known.

    The ends are the means of the quicker and of the slower half. A component without tasks counts as the others' mean.
    """
    if len(task_seconds) < TIMED_TASKS:
        return ""
    planned = [c for c in tree.components if c.tasks]
    unplanned = sum(not c.tasks and c.state is not State.COMPLETE for c in tree.components)
    each = sum(len(c.tasks) for c in planned) / len(planned) if planned else 1
    left = sum(t.open for t in tree.tasks) + unplanned * each
    if not left:
        return ""
    ordered = sorted(task_seconds)
    half = (len(ordered) + 1) // 2
    quick, slow = sum(ordered[:half]) / half, sum(ordered[-half:]) / half
    low, high = round(left * quick / 60), round(left * slow / 60)
    if high < 1:
        return "less than a minute left"
    return f"about {low} to {high} min left" if low < high else f"about {high} min left"


def _meter(board: Board, snapshot: Snapshot, width: int) -> Styled:
    tokens = board.tokens if snapshot.tokens is None else snapshot.tokens
    cost = board.cost_usd if snapshot.cost_usd is None else snapshot.cost_usd
    ceiling = f" of {dollars(snapshot.cost_limit_usd)}" if snapshot.cost_limit_usd else ""
    parts = [f"{dollars(cost)}{'+' if board.unpriced else ''}{ceiling}"]
    parts.append(f"{tokens:,}{f' of {snapshot.token_limit:,}' if snapshot.token_limit else ''} tokens")
    if board.model:
        parts.append(board.model)
    shares = (
        cost / snapshot.cost_limit_usd if snapshot.cost_limit_usd else 0.0,
        tokens / snapshot.token_limit if snapshot.token_limit else 0.0,
    )
    style = "red" if max(shares) >= 0.9 else "yellow" if max(shares) >= 0.8 else ""
    return Styled(clipped(", ".join(parts), width), style)


def _tree(tree: TaskTree, width: int, room: int, marks: dict[State, str]) -> list[Styled]:
    lines: list[tuple[bool, Styled]] = []
    for component in tree.components:
        lines.append((False, _component(component, width, marks)))
        if component.state is not State.COMPLETE:
            lines += [(t.state is State.IN_PROGRESS, _task(t, width, marks)) for t in component.tasks]
    return _window(lines, room)


def _window(lines: list[tuple[bool, Styled]], room: int) -> list[Styled]:
    """Return at most `room` lines around the active one; a cut end says how many lines are missing."""
    if len(lines) <= room:
        return [text for _, text in lines]
    active = next((at for at, (is_active, _) in enumerate(lines) if is_active), 0)
    first = min(max(0, active - room // 2), len(lines) - room)
    shown = [text for _, text in lines[first : first + room]]
    if first and room > 2:
        shown[0] = Styled(f"  … {first + 1} more above", "dim")
    below = len(lines) - first - room
    if below and room > 2:
        shown[-1] = Styled(f"  … {below + 1} more below", "dim")
    return shown


def _component(component: Component, width: int, marks: dict[State, str]) -> Styled:
    done = sum(t.state is State.COMPLETE for t in component.tasks)
    count = f" {done}/{len(component.tasks)}" if component.tasks else ""
    state = component.state
    return Styled(f"{marks[state]} {clipped(component.name, width - 2 - len(count))}{count}", STYLES[state])


def _task(task: Task, width: int, marks: dict[State, str]) -> Styled:
    given_up = " (skipped)" if task.given_up else ""
    label = clipped(f"{task.id} {task.name}", max(4, width - 4 - len(given_up)))
    return Styled(f"  {marks[task.state]} {label}{given_up}", STYLES[task.state])


def style_of(event: e.Event) -> str:
    """Return the style of an event's line."""
    match event:
        case e.VerificationRan() | e.VerdictGiven():
            return "green" if event.passed else "red"
        case e.ToolEnded():
            return "" if event.outcome == "ok" else "yellow"
        case e.IterationEnded(outcome="recorded"):
            return "dim"
        case e.Notice():
            return "" if event.level == "info" else "yellow"
        case _:
            return _STYLES.get(type(event), "")
