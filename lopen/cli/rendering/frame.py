"""The picture of the live view: a board and a snapshot in, lines of styled text out. Pure.

Text of others enters through `clipped`, as `Text`, never as markup. No line is wider than the terminal and
the picture never higher: what does not fit is left out around the work in progress.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rich.text import Text

from lopen.base.escape import clipped
from lopen.cli.rendering.board import Board, Snapshot
from lopen.cli.rendering.plain import money
from lopen.workflow.steps import Step, number
from lopen.workflow.task_tree import Component, State, Task, TaskTree

MARKS = {State.PENDING: "○", State.IN_PROGRESS: "▶", State.COMPLETE: "✓", State.FAILED: "✗"}
ASCII_MARKS = {State.PENDING: "o", State.IN_PROGRESS: ">", State.COMPLETE: "+", State.FAILED: "x"}
STYLES = {State.PENDING: "dim", State.IN_PROGRESS: "bold cyan", State.COMPLETE: "green", State.FAILED: "red"}
BAR_WIDTH = 20


def frame(
    board: Board, snapshot: Snapshot, *, width: int, height: int, now: datetime, ascii_only: bool = False
) -> list[Text]:
    """The lines, top to bottom."""
    head = [_title(board, width, now)]
    foot = [*_now(board, width, now), _meter(board, snapshot, width, ascii_only)]
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
        at = f"{board.number} of {number(Step.REPEAT)}, " if 0 < board.number <= number(Step.REPEAT) else ""
        parts.append(f"step {at}{board.step.replace('_', ' ')}")
    if board.iteration:
        parts.append(f"iteration {board.iteration}")
    if board.phase:
        parts.insert(1, board.phase.replace("_", " "))
        if len(", ".join(parts)) > width:  # the step says more than its phase
            del parts[1]
    if board.started:
        parts.append(_elapsed(now - board.started))
    return Text(clipped(", ".join(parts), width), "bold")


def _elapsed(span: timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _now(board: Board, width: int, now: datetime) -> list[Text]:
    lines = []
    if board.doing:
        since = int((now - board.doing_since).total_seconds()) if board.doing_since else 0
        span = f" ({since} s)" if since > 0 else ""
        lines.append(Text(clipped(board.doing, width - len(span)) + span, "cyan"))
    tail = board.text.rstrip().rsplit("\n", 1)[-1]
    if tail.strip():
        lines.append(Text(clipped(tail[-(width - 2) :], width), "italic"))
    return lines


def _meter(board: Board, snapshot: Snapshot, width: int, ascii_only: bool) -> Text:
    tokens = board.tokens if snapshot.tokens is None else snapshot.tokens
    cost = board.cost_usd if snapshot.cost_usd is None else snapshot.cost_usd
    parts = [f"{tokens:,}{f' of {snapshot.token_limit:,}' if snapshot.token_limit else ''} tokens"]
    ceiling = f" of {money(snapshot.cost_limit_usd)}" if snapshot.cost_limit_usd else ""
    parts.append(f"{money(cost)}{'+' if board.unpriced else ''}{ceiling}")
    if board.model:
        parts.append(board.model)
    line = Text()
    words = ", ".join(parts)
    if snapshot.token_limit and width >= BAR_WIDTH + 30:
        share = min(1.0, tokens / snapshot.token_limit)
        filled = round(share * BAR_WIDTH)
        full, empty = ("#", "-") if ascii_only else ("█", "░")
        line.append(full * filled + empty * (BAR_WIDTH - filled), _heat(share))
        line.append(f" {share:.0%} ")
    line.append(clipped(words, width - len(line)))
    return line


def _heat(share: float) -> str:
    return "red" if share >= 0.9 else "yellow" if share >= 0.8 else "green"


def _tree(tree: TaskTree, width: int, room: int, marks: dict[State, str]) -> list[Text]:
    lines: list[tuple[bool, Text]] = []
    for component in tree.components:
        lines.append((False, _component(component, width, marks)))
        if component.state is not State.COMPLETE:
            lines += [(t.state is State.IN_PROGRESS, _task(t, width, marks)) for t in component.tasks]
    return _window(lines, room)


def _window(lines: list[tuple[bool, Text]], room: int) -> list[Text]:
    """At most `room` lines around the active one; cut ends say how much is not shown."""
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
    given_up = " (given up)" if task.given_up else ""
    words = clipped(f"{task.id} {task.name}", max(4, width - 4 - len(given_up)))
    return Text(f"  {marks[task.state]} {words}{given_up}", STYLES[task.state])
