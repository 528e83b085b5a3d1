"""The live view: important lines scroll by above a picture of the run.

Rich redraws in its own thread, which reads only immutable values that the publishing thread replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from lopen.base import events as e
from lopen.base.clock import Clock, SystemClock
from lopen.base.escape import inert
from lopen.cli.rendering.frame import Board, Snapshot, frame, is_warning
from lopen.cli.rendering.lines import line

REDRAWS_PER_SECOND = 4

# Events whose lines scroll by and stay readable; the others only change the picture.
_SCROLLS = (
    e.SessionStarted,
    e.SessionPaused,
    e.SessionFailed,
    e.SessionComplete,
    e.StepEntered,
    e.ModelFallback,
    e.ProgressReported,
    e.VerificationRan,
    e.VerdictGiven,
    e.SpecApproved,
    e.PlanRecorded,
    e.TaskChanged,
    e.ComponentComplete,
    e.Committed,
    e.Reverted,
    e.QuestionAsked,
    e.CircuitChanged,
    e.Waiting,
    e.Notice,
)
_STYLES: dict[type[e.Event], str] = {
    e.ToolEnded: "yellow",
    e.IterationEnded: "yellow",
    e.Committed: "green",
    e.ComponentComplete: "green",
    e.SessionComplete: "bold green",
    e.SessionFailed: "bold red",
    e.SessionPaused: "bold yellow",
    e.StepEntered: "bold",
}


def scrolls(event: e.Event) -> bool:
    """True for an event whose line scrolls by: of calls and iterations, only those that did not succeed."""
    match event:
        case e.ToolEnded():
            return event.outcome == "refused"
        case e.IterationEnded():
            return event.outcome != "recorded"
        case _:
            return isinstance(event, _SCROLLS) or is_warning(event)


def style_of(event: e.Event) -> str:
    """Return the style of a line that scrolls by."""
    if isinstance(event, e.VerificationRan | e.VerdictGiven) and not event.passed:
        return "red"
    return "yellow" if is_warning(event) else _STYLES.get(type(event), "")


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
    ) -> None:
        self._console = Console(
            file=out, no_color=not color or None, highlight=False, markup=False, emoji=False, soft_wrap=False
        )
        self._ascii_only = "utf" not in (out.encoding or "").lower()
        self._clock = clock or SystemClock()
        self._take_snapshot = snapshot
        self._redact = redact
        self._board, self._snapshot = Board(), Snapshot()
        self._live: Live | None = None

    def __call__(self, recorded: e.Recorded) -> None:
        event = self._without_secrets(recorded.event)
        self._board = self._board.after(replace(recorded, event=event))
        if not isinstance(event, e.ModelText | e.ModelInput):
            self._snapshot = self._take_snapshot()
            self._start()
        for text in self._lines_to_print(event):
            self._console.print(text)

    def _without_secrets(self, event: e.Event) -> e.Event:
        """Redact every text before it is clipped: half a secret would not be recognised."""
        texts = {f.name: getattr(event, f.name) for f in fields(event)}
        return replace(event, **{n: self._redact(v) for n, v in texts.items() if isinstance(v, str)})

    def _lines_to_print(self, event: e.Event) -> Iterator[Text]:
        text = line(event) if scrolls(event) else None
        if text is not None:
            yield Text(self._redact(text), style_of(event))
        if isinstance(event, e.TurnEnded) and event.purpose == "turn" and event.text.strip():
            yield Text(self._redact(inert(event.text, lines=True).strip("\n")), "italic")
        if isinstance(event, e.SessionPaused) and event.output:
            yield Text(self._redact(inert(event.output, lines=True)), "dim")

    def _start(self) -> None:
        if self._live is None:
            self._live = Live(
                console=self._console,
                get_renderable=self._picture,
                refresh_per_second=REDRAWS_PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def _picture(self) -> Group:
        size = self._console.size
        width = max(1, size.width)
        lines = frame(
            self._board,
            self._snapshot,
            width=width,
            height=max(4, size.height - 1),
            now=self._clock.now(),
            ascii_only=self._ascii_only,
        )
        if size.height > 4:  # a rule between the lines that scroll by and the picture
            lines.insert(0, Text(("-" if self._ascii_only else "─") * width, "dim"))
        for text in lines:
            text.no_wrap, text.overflow = True, "crop"
            text.plain = self._redact(text.plain)
        return Group(*lines)

    def _stop(self, *, keep: bool) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.transient = not keep
            live.stop()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Remove the picture; the next event draws it again."""
        self._stop(keep=False)
        yield

    def close(self) -> None:
        """Leave the last picture in place and the cursor below it."""
        self._stop(keep=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
