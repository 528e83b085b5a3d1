"""The views of a run: live, plain lines, or JSON lines.

Use the result of `subscriber` as a context manager: closing the live view restores the terminal.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TextIO, assert_never

from lopen.application.command_context import View
from lopen.application.event_lines import rows
from lopen.core import events as e
from lopen.core.escape import UNSEEN
from lopen.core.wrapping import width_of, wrapped

if TYPE_CHECKING:
    from lopen.cli.rendering.live import Snapshot, ViewKey

Mode = Literal["live", "plain", "quiet", "json"]


def mode_for(stream: TextIO, *, json: bool, quiet: bool, environ: Mapping[str, str] | None = None) -> Mode:
    """Return the mode for a stream: live only on a terminal that can move its cursor and shows UTF-8."""
    variables = os.environ if environ is None else environ
    if json:
        return "json"
    if quiet:
        return "quiet"
    capable = (
        variables.get("TERM", "") not in ("", "dumb", "unknown") and "utf" in (stream.encoding or "").lower()
    )
    return "live" if capable and stream.isatty() else "plain"


def subscriber(
    mode: Mode,
    out: TextIO,
    *,
    snapshot: Callable[[], Snapshot] | None = None,
    redact: Callable[[str], str] = str,
    color: bool = True,
    verbose: bool = False,
    keys: Mapping[str, ViewKey] | None = None,
) -> View:
    """Return the view for a mode, writing to `out`.

    `snapshot` gives the live view the tree, the totals and the limits, which no event carries. It is called in
    the publishing thread. `redact` removes secrets from every line. `keys` belong to the live view.
    """
    match mode:
        case "live":
            from lopen.cli.rendering.live import LiveView, Snapshot

            return LiveView(
                out,
                snapshot=snapshot or Snapshot,
                redact=redact,
                color=color and not os.environ.get("NO_COLOR"),
                keys=keys,
            )
        case "plain" | "quiet":
            return PlainView(out, redact=redact, quiet=mode == "quiet", verbose=verbose)
        case "json":
            return JsonView(out, redact=redact)
        case _:
            assert_never(mode)


class LineWriter(View):
    """Writes redacted lines to a stream and flushes each one; it holds nothing of the terminal."""

    def __init__(self, out: TextIO, redact: Callable[[str], str]) -> None:
        self._out = out
        self._redact = redact
        self._width = width_of(out)

    def write(self, line: str) -> None:
        """Write one line."""
        self._out.write(wrapped(self._redact(line), self._width) + "\n")
        self._out.flush()


class PlainView(LineWriter):
    """One line per event with the time of day; details, the model's text among them, where it is verbose.

    In quiet mode: only the end of the run, alerts, questions and warnings.
    """

    def __init__(
        self, out: TextIO, *, redact: Callable[[str], str] = str, quiet: bool = False, verbose: bool = False
    ) -> None:
        super().__init__(out, redact)
        self._quiet = quiet
        self._verbose = verbose

    def __call__(self, recorded: e.Recorded) -> None:
        if not self._quiet or shown_when_quiet(recorded.event):
            for row in rows(recorded, verbose=self._verbose):
                self.write(row)


def shown_when_quiet(event: e.Event) -> bool:
    """Return True for an event that is shown with `--quiet`: an end, an alert, a question or a warning."""
    if isinstance(event, e.Notice):
        return event.level in ("warning", "error")
    shown = e.SessionPaused | e.SessionFailed | e.SessionComplete | e.AlertRaised | e.QuestionAsked
    return isinstance(event, shown)


# Written as escapes, which mean the same in JSON: a terminal obeys C1 and bidirectional controls, others show nothing,
# some readers break lines at U+0085, U+2028 and U+2029, and half of a surrogate pair cannot be encoded.
_UNSAFE = re.compile(f"[\x7f{UNSEEN}]")


def safe_json(recorded: e.Recorded) -> str:
    """Return the event as one line of JSON that is safe to show anywhere."""
    return _UNSAFE.sub(
        lambda found: json.dumps(found[0])[1:-1].replace("\x7f", "\\u007f"), recorded.to_json()
    )


class JsonView(LineWriter):
    """Every event as one line of JSON, streamed text included; a tool's input comes whole, with its call."""

    def __call__(self, recorded: e.Recorded) -> None:
        if isinstance(recorded.event, e.ModelInput):
            return
        self._out.write(f"{self._redact(safe_json(recorded))}\n")
        self._out.flush()
