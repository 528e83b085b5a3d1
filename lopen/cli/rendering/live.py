"""The live view: the log scrolls by above a picture of the run, which is drawn again a few times a second.

Events become a board, a board and a snapshot become lines of text, which `rich` wraps, clips and colours; both are
pure. One thread writes to the terminal; publishers of events only queue them. Between two drawings the cursor rests at
the picture's first character. A terminal that is resized wraps its lines anew and keeps the cursor at that character.
So erasing everything below it removes the whole picture at any height, which `rich.live` does not.
"""

from __future__ import annotations

import errno
import os
import re
import select
import signal
import sys
import termios
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from types import FrameType, TracebackType
from typing import NamedTuple, TextIO

from rich.console import Console, ConsoleDimensions
from rich.text import Text

from lopen.application.command_context import View
from lopen.application.event_lines import MARKS, act_words, line, rows, step_words, test_counts, tone
from lopen.core import events as e
from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError
from lopen.core.escape import inert
from lopen.core.money import dollars
from lopen.core.wrapping import wrapped
from lopen.limits.budget import BudgetState
from lopen.workflow.task_tree import State, TaskTree, progress

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
        """Return the subject of the writing, as far as it is known: "writing write_file a.py, 1,200 characters"."""
        found = _PLACE.search(self.head) if self.tool else None
        named = " ".join(part for part in (self.tool or "text", found[1] if found else "") if part)
        return f"writing {named}, {self.characters:,} characters"


@dataclass(frozen=True, slots=True)
class Board:
    """State of the live view after a number of events."""

    started: datetime | None = None
    module: str = ""
    step: str = ""
    model: str = ""
    activity: str = ""
    activity_start: datetime | None = None
    streamed: Streamed = Streamed()
    tests: str = ""
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
                return replace(self, step=event.step, model=event.model)
            case e.TurnStarted():
                return replace(self, model=event.model, streamed=Streamed())
            case e.VerificationRan(tool="verify_tests"):
                return replace(self, tests=test_counts(event.output) or self.tests)
            case e.TurnEnded():
                return replace(self, streamed=Streamed())
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
            return f"{act_words(event.tool)} {event.summary}".strip()
        case e.ProgressTold(text):
            return text
        case e.QuestionAsked(question=question, answer=""):
            return f"the model asks: {question}"
        case e.ModelRetry() | e.Waiting() | e.QuestionAsked():
            return line(event)
        case e.TurnEnded() | e.ToolEnded() | e.IterationEnded():
            return ""
        case e.SessionPaused() | e.SessionFailed() | e.SessionComplete():
            return ""
        case _:
            return None


HIGHEST = 14  # lines: a narrower window wraps them, and what then leaves the screen stays in the scrollback
TIMED_TASKS = 2  # before that, a remaining time would be guessed
WIDEST = 1_000  # columns of a terminal
SHOWN_TAIL = 60  # characters of the text that the model is writing
STYLES = {State.PENDING: "dim", State.IN_PROGRESS: "bold cyan", State.COMPLETE: "green", State.FAILED: "red"}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tree, totals and limits of the session. A limit of 0 means no limit."""

    tree: TaskTree = field(default_factory=TaskTree)
    tokens: int = 0
    token_limit: int = 0
    cost_usd: float = 0.0
    cost_limit_usd: float = 0.0
    unpriced: bool = False


def snapshot_of(tree: TaskTree, budgets: Iterable[BudgetState] = (), cost_limit_usd: float = 0.0) -> Snapshot:
    """Return the snapshot of a session: its tree, and the spent part of its own budget."""
    state = next((b for b in budgets if b.budget_type == "session"), None)
    if state is None:
        return Snapshot(tree, cost_limit_usd=cost_limit_usd)
    unpriced = state.unpriced_tokens > 0
    return Snapshot(tree, state.tokens_used, state.max_tokens, state.cost_usd, cost_limit_usd, unpriced)


def frame(
    board: Board,
    snapshot: Snapshot,
    *,
    height: int,
    now: datetime,
    keys: str = "",
) -> list[Text]:
    """Return the lines of the picture, top to bottom; each is to be clipped at the terminal's width.

    Of a tree that is too high, the lines around the task in progress are shown.
    """
    head = [Text("─" * WIDEST, "dim", overflow="crop"), _title(board, snapshot.tree), *_current(board, now)]
    foot = [*_progress(board, snapshot, now), _meter(board, snapshot)]
    if keys:
        foot.append(Text(keys, "dim"))
    height = min(height, HIGHEST)
    tree = _window(list(_tree(snapshot.tree)), max(1, height - len(head) - len(foot)))
    return [*head, *tree, *foot][: max(1, height)]


def _title(board: Board, tree: TaskTree) -> Text:
    task = next((t.name for t in tree.tasks if t.state is State.IN_PROGRESS), "")
    parts = [board.module or "lopen", task or step_words(board.step)]
    return Text(inert(": ".join(filter(None, parts))), "bold")


def _current(board: Board, now: datetime) -> Iterator[Text]:
    activity = str(board.streamed) if board.streamed.characters else board.activity
    seconds = int((now - board.activity_start).total_seconds()) if board.activity_start else 0
    yield Text(f"{f'{seconds} s: ' if seconds > 0 else ''}{inert(activity).strip()}", "cyan")
    tail = "" if board.streamed.tool else board.streamed.tail.rstrip().rsplit("\n", 1)[-1]
    if tail.strip():
        yield Text(inert(tail[-SHOWN_TAIL:]).strip(), "italic")


def _progress(board: Board, snapshot: Snapshot, now: datetime) -> list[Text]:
    done = progress(snapshot.tree)
    parts = [elapsed(now - board.started)] if board.started else []
    parts += [f"{done.tasks_done} of {done.tasks} tasks done"] if done.tasks else []
    if left := remaining(board.task_seconds, snapshot.tree):
        parts.append(left)
    if board.tests:
        parts.append(f"last test run: {board.tests}")
    return [Text(", ".join(parts))] if parts else []


def elapsed(time: timedelta) -> str:
    """Return the time since the beginning, such as "1:30 min" or "1:02:03 h"."""
    seconds = max(0, int(time.total_seconds()))
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}:{minutes:02}:{seconds % 60:02} h" if hours else f"{minutes}:{seconds % 60:02} min"


def remaining(task_seconds: tuple[float, ...], tree: TaskTree) -> str:
    """Return a range for the time that the open tasks take, from the completed ones; "" before it is known.

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
    return f"about {low} to {high} min left" if 0 < low < high else f"about {high} min left"


def _meter(board: Board, snapshot: Snapshot) -> Text:
    tokens, cost = snapshot.tokens, snapshot.cost_usd
    ceiling = f" of {dollars(snapshot.cost_limit_usd)}" if snapshot.cost_limit_usd else ""
    parts = [f"{dollars(cost)}{'+' if snapshot.unpriced else ''}{ceiling}"]
    parts.append(f"{tokens:,}{f' of {snapshot.token_limit:,}' if snapshot.token_limit else ''} tokens")
    if board.model:
        parts.append(inert(board.model))
    shares = (
        cost / snapshot.cost_limit_usd if snapshot.cost_limit_usd else 0.0,
        tokens / snapshot.token_limit if snapshot.token_limit else 0.0,
    )
    style = "red" if max(shares) >= 0.9 else "yellow" if max(shares) >= 0.8 else ""
    return Text(", ".join(parts), style)


def _tree(tree: TaskTree) -> Iterator[tuple[bool, Text]]:
    """Yield the line of each component and of each task of an open one, with True for the task in progress."""
    for component in tree.components:
        done = sum(t.state is State.COMPLETE for t in component.tasks)
        count = f" {done}/{len(component.tasks)}" if component.tasks else ""
        state = component.state
        yield False, Text(f"{MARKS[state]} {inert(component.name)}{count}", STYLES[state])
        for task in component.tasks if state is not State.COMPLETE else ():
            given_up = " (skipped)" if task.given_up else ""
            shown = f"  {MARKS[task.state]} {inert(f'{task.id} {task.name}')}{given_up}"
            yield task.state is State.IN_PROGRESS, Text(shown, STYLES[task.state])


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


TONES = {"good": "green", "bad": "red", "warn": "yellow", "calm": ""}
_CLOSED = (errno.EIO, errno.ENOTTY)  # ENOTTY: the null device is in its place
PERIOD_S = 0.1
CLOSE_S = 5.0
# ECMA-48 and DEC private modes, see docs/reference/command-line.md
_ERASE_BELOW = "\r\x1b[J"
_SHOW_CURSOR, _HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"
_WRAP, _NO_WRAP = "\x1b[?7h", "\x1b[?7l"
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"  # drawn at once; terminals without it ignore it


def in_foreground(descriptor: int) -> bool:
    """False for a background job of the shell: to change the terminal, or to read from it, would stop it."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # not this process's controlling terminal: no job control
        return True


class Keyboard:
    """The keys of the terminal that `out` writes to, between `open` and `close`. Ctrl-C and Ctrl-Z keep their meaning."""

    def __init__(self, out: TextIO) -> None:
        self._terminal = out.fileno()
        self._before: list[object] | None = None

    @property
    def readable(self) -> bool:
        """True if standard input is a terminal too."""
        try:
            return sys.stdin.isatty()
        except ValueError:  # closed
            return False

    def open(self) -> None:
        """Stop the terminal from echoing keys and from collecting whole lines."""
        if self._before is not None or not in_foreground(self._terminal):
            return
        with suppress(termios.error):
            self._before = termios.tcgetattr(self._terminal)
            after = termios.tcgetattr(self._terminal)
            after[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(self._terminal, termios.TCSANOW, after)

    def close(self) -> None:
        """Restore the terminal's modes."""
        before, self._before = self._before, None
        if before is not None and in_foreground(self._terminal):
            with suppress(termios.error):
                termios.tcsetattr(self._terminal, termios.TCSANOW, before)  # type: ignore[arg-type]

    def pressed(self) -> str:
        """Return the keys pressed since the last call."""
        if self._before is None or not self.readable or not in_foreground(sys.stdin.fileno()):
            return ""
        descriptor = sys.stdin.fileno()
        if not select.select([descriptor], [], [], 0)[0]:
            return ""
        with suppress(OSError):
            return os.read(descriptor, 64).decode("ascii", "ignore")
        return ""


UP, DOWN, ENTER = "k", "j", "\n"
KEY_NAMES = {UP: "↑", DOWN: "↓", ENTER: "Enter"}


class ViewKey(NamedTuple):
    """A key of the live view: its effect in one word, the action, which returns the view to show, and the word after it."""

    label: str
    action: Callable[[], str]
    after: str = ""


class LiveView(View):
    """Draws on a terminal until closed. `suspended` leaves the terminal to a prompt."""

    def __init__(
        self,
        out: TextIO,
        *,
        snapshot: Callable[[], Snapshot] = Snapshot,
        redact: Callable[[str], str] = str,
        color: bool = True,
        keys: Mapping[str, ViewKey] | None = None,
        overview: Callable[[], Sequence[tuple[str, str]]] = tuple,
    ) -> None:
        """`overview`: lines with their styles that take the place of a session's picture while there are any."""
        self._out = out
        self._overview = overview
        self._console = Console(
            file=out, force_terminal=True, no_color=not color or None, highlight=False, legacy_windows=False
        )
        self._clock = SystemClock()
        self._take_snapshot = snapshot
        self._redact = redact
        self._keyboard = Keyboard(out)
        own = {"l": ViewKey("log details", self._switch_details)}
        self._keys = {**(keys or {}), **own} if self._keyboard.readable else {}
        self._board, self._snapshot = Board(), Snapshot()
        self._detailed = False
        self._waiting: deque[e.Recorded | Text] = deque()  # events and lines to show
        self._lock = threading.RLock()  # its holder may write to the terminal
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn = ""
        self._held = self._closing = self._gone = False  # gone: the terminal was closed
        self._failure: BaseException | None = None
        self._at_stop: signal._HANDLER = signal.SIG_DFL

    def __call__(self, recorded: e.Recorded) -> None:
        if self._failure is not None:
            raise self._failure
        if self._gone:
            return
        self._waiting.append(recorded)
        if not isinstance(recorded.event, e.ModelText | e.ModelInput):
            self._snapshot = self._take_snapshot()
            self._start()

    def open(self, history: Iterable[e.Recorded], module: str = "") -> None:
        """Show the module's session of these events, none of which is printed, or the overview without a module."""
        board = Board(module=module)
        for recorded in history:
            board = board.after(replace(recorded, event=self._without_secrets(recorded.event)))
        self._board, self._snapshot = board, self._take_snapshot()
        self._start()

    def shows(self, text: str, style: str = "") -> bool:
        """Print lines above the picture; False if there is none, and the caller prints them."""
        if self._thread is None or self._held:
            return False
        self._waiting.extend(Text(line, style) for line in text.split("\n"))
        return True

    def _without_secrets(self, event: e.Event) -> e.Event:
        """Redact every text before it is clipped: half a secret would not be recognised."""
        texts = {f.name: getattr(event, f.name) for f in fields(event)}
        return replace(event, **{n: self._redact(v) for n, v in texts.items() if isinstance(v, str)})

    def _take_lines(self) -> list[Text]:
        """Bring the board up to date with what waits, and return the lines to print."""
        lines: list[Text] = []
        for _ in range(len(self._waiting)):
            waiting = self._waiting.popleft()
            if isinstance(waiting, Text):
                lines.append(waiting)
                continue
            recorded = replace(waiting, event=self._without_secrets(waiting.event))
            self._board = self._board.after(recorded)
            if not isinstance(recorded.event, e.ModelText | e.ModelInput):
                lines += self._lines_to_print(recorded)
        return lines

    def _lines_to_print(self, recorded: e.Recorded) -> Iterator[Text]:
        style = TONES[tone(recorded.event)]
        for row in rows(recorded, verbose=self._detailed):
            yield Text(self._redact(row), "dim" if row.startswith(" ") else style)

    def _start(self) -> None:
        if self._thread is None:
            self._closing = False
            with suppress(ValueError):  # a signal can be caught only in the main thread
                self._at_stop = signal.signal(signal.SIGTSTP, self._stop_job)
            self._keyboard.open()
            self._thread = threading.Thread(target=self._draw_until_closed, name="live view", daemon=True)
            self._thread.start()

    def _draw_until_closed(self) -> None:
        try:
            while not self._closing:
                self._wake.wait(PERIOD_S)
                with self._lock:
                    if not self._held:
                        self._obey(self._keyboard.pressed())
                        self._draw()
        except BaseException as error:  # noqa: BLE001 - raised where the next event is published
            self._stop_drawing(error)

    def _stop_drawing(self, error: BaseException) -> None:
        """Keep the failure; a terminal that was closed is none: SIGHUP follows, unless it is ignored."""
        self._gone = isinstance(error, OSError) and error.errno in _CLOSED
        self._failure = None if self._gone else error

    def _obey(self, pressed: str) -> None:
        for letter in dict.fromkeys(pressed.replace("\x1b[A", UP).replace("\x1b[B", DOWN)):
            if key := self._keys.get(letter.lower()):
                try:
                    said = key.action()
                    self._keys[letter.lower()] = key._replace(label=key.after or key.label)
                except LopenError as error:
                    said = f"{error.message}{f'; {error.hint}' if error.hint else ''}"
                for line in self._redact(inert(said, lines=True)).split("\n") if said else ():
                    change = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
                    self._waiting.append(Text(line, change))

    def _switch_details(self) -> str:
        self._detailed = not self._detailed
        if self._detailed:
            return "log with details: turns, tokens, and what commands print"
        return "log without details"

    def _draw(self) -> None:
        """Print the lines that wait, and the picture below them; nothing if nothing has changed."""
        size = os.get_terminal_size(self._out.fileno())
        self._console.size = ConsoleDimensions(size.columns or 80, size.lines or 24)
        lines = self._take_lines()
        picture = self._picture() if in_foreground(self._out.fileno()) else ""
        if not lines and picture == self._drawn:
            return
        hidden = _HIDE_CURSOR if picture else ""
        self._write(f"{_BEGIN}{hidden}{_ERASE_BELOW}{self._printed(lines)}{picture}{_END}")
        self._drawn = picture

    def _printed(self, lines: Iterable[Text]) -> str:
        """Return lines of the log as they are printed, broken between words."""
        with self._console.capture() as printed:
            for line in lines:
                self._console.print(Text(wrapped(line.plain, self._console.width), line.style))
        return printed.get()

    def _picture(self) -> str:
        """Return the picture as it is printed; the cursor ends at its first character."""
        height = self._console.height - 1
        keys = "  ".join(
            f"{KEY_NAMES.get(letter, letter)} {key.label}".strip() for letter, key in self._keys.items()
        )
        lines = [Text(inert(text), style) for text, style in self._overview()[: height - 1]]
        if lines:
            lines.append(Text(keys, "dim"))
        else:
            lines = frame(self._board, self._snapshot, height=height, now=self._clock.now(), keys=keys)
        with self._console.capture() as printed:
            for line in lines:
                shown = Text(self._redact(line.plain), line.style)
                self._console.print(shown, no_wrap=True, overflow=line.overflow or "ellipsis")
        up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
        return f"{_NO_WRAP}{printed.get().rstrip()}{_WRAP}{up}\r"

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _leave(self) -> None:
        """Print the lines that wait, erase the picture and restore the terminal."""
        erased = _ERASE_BELOW if self._drawn else ""
        self._drawn = ""
        self._keyboard.close()
        self._write(f"{erased}{self._printed(self._take_lines())}{_SHOW_CURSOR}")

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Leave the terminal to a prompt."""
        with self._lock:
            held, self._held = self._held, True
            if not held and self._thread is not None:
                self._leave()
        try:
            yield
        finally:
            with self._lock:
                self._held = held
                if not held and self._thread is not None:
                    self._keyboard.open()

    def _stop_job(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: leave the terminal to the shell as it was before; draw again when the job goes on."""
        with self.suspended():
            os.kill(os.getpid(), signal.SIGSTOP)

    def close(self) -> None:
        """Print the remaining lines, erase the picture and restore the terminal. May be called again."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._closing = True
        self._wake.set()
        thread.join(CLOSE_S)
        self._wake.clear()
        with suppress(ValueError):
            signal.signal(signal.SIGTSTP, self._at_stop)
        with self._lock:
            if self._failure is None and not self._gone:
                self._leave()
            else:
                self._keyboard.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None and self._failure is not None:
            raise self._failure
