"""The live view: the log scrolls by above a picture of the run, which is drawn again a few times a second.

One thread writes to the terminal; whoever publishes events only queues them. Between two drawings the cursor rests
at the picture's first character. A terminal that is resized wraps its lines anew and keeps the cursor at that
character, so that erasing everything below it removes the whole picture, however high it has become.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import termios
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from types import FrameType, TracebackType
from typing import NamedTuple, Self, TextIO

from lopen.cli.rendering.lines import rows
from lopen.cli.rendering.picture import Board, Snapshot, Styled, frame, style_of
from lopen.core import events as e
from lopen.core.clock import Clock, SystemClock
from lopen.core.errors import LopenError
from lopen.core.escape import inert

_CLOSED = (errno.EIO, errno.ENOTTY)  # ENOTTY: the null device is in its place
PERIOD_S = 0.1
CLOSE_S = 5.0
# ECMA-48 and DEC private modes, see docs/reference/command-line.md
_ERASE_BELOW = "\r\x1b[J"
_SHOW_CURSOR, _HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"
_WRAP, _NO_WRAP = "\x1b[?7h", "\x1b[?7l"
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"  # drawn at once; terminals without it ignore it
_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3"}
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36"}
# After these, the snapshot has changed.
_COUNTED = (
    e.SessionStarted,
    e.StepEntered,
    e.IterationStarted,
    e.TurnEnded,
    e.PlanRecorded,
    e.TaskChanged,
    e.ComponentComplete,
    e.VerdictGiven,
    e.Reverted,
)


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


class ViewKey(NamedTuple):
    """A key of the live view: what it does in one word, and the action, which returns what is to be shown."""

    label: str
    action: Callable[[], str]


def scrolls(event: e.Event) -> bool:
    """False for an event of which only the log with details has a line: the picture shows the same."""
    match event:
        case e.IterationEnded():
            return event.outcome != "recorded"
        case e.IterationStarted() | e.TurnEnded():
            return False
        case _:
            return True


class LiveView:
    """Draws on a terminal until closed. `suspended` leaves the terminal to a prompt."""

    def __init__(
        self,
        out: TextIO,
        *,
        snapshot: Callable[[], Snapshot] = Snapshot,
        redact: Callable[[str], str] = str,
        color: bool = True,
        clock: Clock | None = None,
        keys: Mapping[str, ViewKey] | None = None,
    ) -> None:
        self._out = out
        self._color = color
        self._ascii_only = "utf" not in (out.encoding or "").lower()
        self._clock = clock or SystemClock()
        self._take_snapshot = snapshot
        self._redact = redact
        self._keyboard = Keyboard(out)
        own = {"l": ViewKey("log details", self._switch_details)}
        self._keys = {**(keys or {}), **own} if self._keyboard.readable else {}
        self._board, self._snapshot = Board(), Snapshot()
        self._detailed = False
        self._waiting: deque[e.Recorded | Styled] = deque()  # events and lines to show
        self._lock = threading.RLock()  # whoever holds it may write to the terminal
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn: list[str] = []
        self._held = self._closing = self._gone = False  # gone: the terminal was closed
        self._failure: BaseException | None = None
        self._at_stop: signal._HANDLER = signal.SIG_DFL

    def __call__(self, recorded: e.Recorded) -> None:
        if self._failure is not None:
            raise self._failure
        if self._gone:
            return
        if isinstance(recorded.event, _COUNTED):
            self._snapshot = self._take_snapshot()
        self._waiting.append(recorded)
        if not isinstance(recorded.event, e.ModelText | e.ModelInput):
            self._start()

    def shows(self, text: str, style: str = "") -> bool:
        """Print lines above the picture; False if there is none, and the caller prints them."""
        if self._thread is None or self._held:
            return False
        self._waiting.extend(Styled(line, style) for line in text.split("\n"))
        return True

    def _without_secrets(self, event: e.Event) -> e.Event:
        """Redact every text before it is clipped: half a secret would not be recognised."""
        texts = {f.name: getattr(event, f.name) for f in fields(event)}
        return replace(event, **{n: self._redact(v) for n, v in texts.items() if isinstance(v, str)})

    def _take_lines(self) -> list[Styled]:
        """Bring the board up to date with what waits, and return the lines to print."""
        lines: list[Styled] = []
        for _ in range(len(self._waiting)):
            waiting = self._waiting.popleft()
            if isinstance(waiting, Styled):
                lines.append(waiting)
                continue
            recorded = replace(waiting, event=self._without_secrets(waiting.event))
            self._board = self._board.after(recorded)
            if not isinstance(recorded.event, e.ModelText | e.ModelInput):
                lines += self._lines_to_print(recorded)
        return lines

    def _lines_to_print(self, recorded: e.Recorded) -> Iterator[Styled]:
        event, style = recorded.event, style_of(recorded.event)
        lines = rows(recorded, verbose=self._detailed)
        if not self._detailed and not scrolls(event):
            lines = [line for line in lines if line.startswith(" ")]  # what the model said
        for line in lines:
            yield Styled(self._redact(line), "dim" if line.startswith(" ") else style)

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
        for letter in dict.fromkeys(pressed):
            if key := self._keys.get(letter.lower()):
                try:
                    said = key.action()
                except LopenError as error:
                    said = f"{error.message}{f'; {error.hint}' if error.hint else ''}"
                for line in self._redact(inert(said, lines=True)).split("\n"):
                    change = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
                    self._waiting.append(Styled(line, change))

    def _switch_details(self) -> str:
        self._detailed = not self._detailed
        if self._detailed:
            return "log with details: turns, tokens, and what commands print"
        return "log without details"

    def _draw(self) -> None:
        """Print the lines that wait, and the picture below them; nothing if nothing has changed."""
        lines = self._take_lines()
        picture = self._picture() if in_foreground(self._out.fileno()) else []
        if not lines and picture == self._drawn:
            return
        printed = self._printed(lines)
        up = f"\x1b[{len(picture) - 1}A\r" if len(picture) > 1 else "\r"
        below = _NO_WRAP + "\n".join(picture) + _WRAP + up if picture else ""
        self._write(f"{_BEGIN}{_HIDE_CURSOR if picture else ''}{_ERASE_BELOW}{printed}{below}{_END}")
        self._drawn = picture

    def _printed(self, lines: Iterable[Styled]) -> str:
        """Return lines of the log as they are printed; the terminal wraps them."""
        return "".join(self._painted(line) + "\n" for line in lines)

    def _columns(self) -> int:
        return max(1, os.get_terminal_size(self._out.fileno()).columns or 80)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _picture(self) -> list[str]:
        size = os.get_terminal_size(self._out.fileno())
        lines = frame(
            self._board,
            self._snapshot,
            width=self._columns(),
            height=max(1, (size.lines or 24) - 1),
            now=self._clock.now(),
            ascii_only=self._ascii_only,
            keys="  ".join(f"{letter} {key.label}" for letter, key in self._keys.items()),
        )
        return [self._painted(Styled(self._redact(line.text), line.style)) for line in lines]

    def _painted(self, line: Styled) -> str:
        known = _ATTRIBUTES | _COLOURS if self._color else _ATTRIBUTES
        codes = ";".join(known[word] for word in line.style.split() if word in known)
        text = line.text.encode("ascii", "replace").decode() if self._ascii_only else line.text
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text

    def _leave(self) -> None:
        """Print the lines that wait, erase the picture and restore the terminal."""
        printed = self._printed(self._take_lines())
        erased = _ERASE_BELOW if self._drawn else ""
        self._drawn = []
        self._keyboard.close()
        self._write(f"{erased}{printed}{_SHOW_CURSOR}")

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
        """Print what is left, erase the picture and restore the terminal. May be called again."""
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None and self._failure is not None:
            raise self._failure
