"""The views that write lines: one per event for people, or one per event as JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TextIO

from lopen.application.command_context import SilentView
from lopen.base import events as e
from lopen.base.escape import inert
from lopen.cli.rendering.lines import line

TEXT_LINES = 40  # of the model's text per turn; -v shows all
# Tools whose success has an event of its own: the end of the call adds nothing.
TOOLS_WITH_EVENTS = (
    "log_research",
    "record_",
    "report_progress",
    "select_component",
    "update_task_status",
    "verify_",
)


class LineWriter(SilentView):
    """Writes redacted lines to a stream and flushes each one; it holds nothing of the terminal."""

    def __init__(self, out: TextIO, redact: Callable[[str], str]) -> None:
        self._out = out
        self._redact = redact

    def write(self, line: str) -> None:
        """Write one line."""
        self._out.write(self._redact(line) + "\n")
        self._out.flush()


class PlainView(LineWriter):
    """One line per event with the time of day, and the model's text below its turn.

    In quiet mode: only the end of the run, alerts, questions and warnings.
    """

    def __init__(
        self, out: TextIO, *, redact: Callable[[str], str] = str, quiet: bool = False, verbose: bool = False
    ) -> None:
        super().__init__(out, redact)
        self._quiet = quiet
        self._verbose = verbose

    def __call__(self, recorded: e.Recorded) -> None:
        if not self._quiet or _shown_when_quiet(recorded.event):
            for row in rows(recorded, verbose=self._verbose):
                self.write(row)


def rows(recorded: e.Recorded, *, verbose: bool = False) -> list[str]:
    """Return the event's line with the time of day, and the lines below it; none for an event that repeats another."""
    event = recorded.event
    if _is_repeated(event) and not verbose:
        return []
    text = line(event)
    shown_by = _shown_by(event) if verbose else ""
    head = [] if text is None else [f"{recorded.ts.astimezone():%H:%M:%S} {text}{shown_by}"]
    return [*head, *(f"         | {row}" for row in _details(event, verbose=verbose))]


def _shown_by(event: e.Event) -> str:
    """Return the name by which `lopen show` shows what the event tells of."""
    match event:
        case e.ToolEnded(number=number) if number:
            return f" [call-{number}]"
        case e.VerificationRan(number=number) if number:
            return f" [verification-{number}]"
        case e.VerdictGiven(evidence_hash=digest) if digest:
            return f" [verdict-{digest[:8]}]"
        case _:
            return ""


def _details(event: e.Event, *, verbose: bool) -> list[str]:
    """Return the lines below an event: the model's text, and the end of what a command printed."""
    match event:
        case e.TurnEnded(purpose="turn", text=text):
            return _first_lines(text, None if verbose else TEXT_LINES)
        case e.VerificationRan(output=output) if verbose:
            return _first_lines(output, None)
        case e.SessionPaused(output=output):
            return _first_lines(output, None)
        case _:
            return []


def _shown_when_quiet(event: e.Event) -> bool:
    if isinstance(event, e.Notice):
        return event.level != "info"
    shown = e.SessionPaused | e.SessionFailed | e.SessionComplete | e.AlertRaised | e.QuestionAsked
    return isinstance(event, shown)


def _is_repeated(event: e.Event) -> bool:
    return (
        isinstance(event, e.ToolEnded) and event.outcome == "ok" and event.tool.startswith(TOOLS_WITH_EVENTS)
    )


def _first_lines(text: str, limit: int | None) -> list[str]:
    lines = inert(text, lines=True).strip("\n").split("\n") if text.strip() else []
    if limit is None or len(lines) <= limit:
        return lines
    return [*lines[:limit], f"… {len(lines) - limit} more lines: lopen log -v"]


# Written as escapes, which mean the same in JSON: a terminal obeys C1 and bidirectional controls, some readers
# break lines at U+0085, U+2028 and U+2029, and half of a surrogate pair cannot be encoded.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def safe_json(recorded: e.Recorded) -> str:
    """Return the event as one line of JSON that is safe to show anywhere."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", recorded.to_json())


class JsonView(LineWriter):
    """Every event as one line of JSON, streamed text included; a tool's input comes whole, with its call."""

    def __call__(self, recorded: e.Recorded) -> None:
        if isinstance(recorded.event, e.ModelInput):
            return
        self.write(safe_json(recorded))
