"""What people and programs see of a run: a live view, plain lines, or JSON lines.

`subscriber` gives the view of a mode; use it as a context manager, so that a live one gives the terminal back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Literal, TextIO, assert_never

from lopen.application.command_context import View
from lopen.cli.rendering.board import Snapshot

Mode = Literal["live", "plain", "quiet", "json"]


def mode_for(stream: TextIO, *, json: bool, quiet: bool, environ: Mapping[str, str] | None = None) -> Mode:
    """How to show a run on `stream` (contract §3, Output)."""
    surroundings = os.environ if environ is None else environ
    if json:
        return "json"
    if quiet:
        return "quiet"
    able = surroundings.get("TERM", "") not in ("", "dumb", "unknown")
    return "live" if able and stream.isatty() else "plain"


def subscriber(
    mode: Mode,
    out: TextIO,
    *,
    snapshot: Callable[[], Snapshot] = Snapshot,
    redact: Callable[[str], str] = str,
    color: bool = True,
    verbose: bool = False,
) -> View:
    """The view for a mode, writing to `out`.

    `snapshot` tells the live view what no event tells: the tree, and the session's totals and limits. It is
    called in the thread that publishes, after events that may have changed it. `redact` takes secrets out
    of every line.
    """
    match mode:
        case "live":
            from lopen.cli.rendering.live import LiveView

            return LiveView(out, snapshot=snapshot, redact=redact, color=color)
        case "plain" | "quiet":
            from lopen.cli.rendering.plain import PlainView

            return PlainView(out, redact=redact, quiet=mode == "quiet", verbose=verbose)
        case "json":
            from lopen.cli.rendering.stream import JsonView

            return JsonView(out, redact=redact)
        case _:
            assert_never(mode)
