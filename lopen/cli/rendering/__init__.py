"""The views of a run: live, plain lines, or JSON lines.

Use the result of `subscriber` as a context manager: closing the live view restores the terminal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TextIO, assert_never

from lopen.application.command_context import View

if TYPE_CHECKING:
    from lopen.cli.rendering.frame import Snapshot
    from lopen.cli.rendering.live import Key

Mode = Literal["live", "plain", "quiet", "json"]


def mode_for(stream: TextIO, *, json: bool, quiet: bool, environ: Mapping[str, str] | None = None) -> Mode:
    """Return the mode for a stream: live only on a terminal that can move its cursor."""
    variables = os.environ if environ is None else environ
    if json:
        return "json"
    if quiet:
        return "quiet"
    capable = variables.get("TERM", "") not in ("", "dumb", "unknown")
    return "live" if capable and stream.isatty() else "plain"


def subscriber(
    mode: Mode,
    out: TextIO,
    *,
    snapshot: Callable[[], Snapshot] | None = None,
    redact: Callable[[str], str] = str,
    color: bool = True,
    verbose: bool = False,
    keys: Mapping[str, Key] | None = None,
) -> View:
    """Return the view for a mode, writing to `out`.

    `snapshot` gives the live view the tree, the totals and the limits, which no event carries. It is called in
    the publishing thread. `redact` removes secrets from every line. `keys` are those of the live view.
    """
    match mode:
        case "live":
            from lopen.cli.rendering.frame import Snapshot
            from lopen.cli.rendering.live import LiveView

            return LiveView(
                out,
                snapshot=snapshot or Snapshot,
                redact=redact,
                color=color and not os.environ.get("NO_COLOR"),
                keys=keys,
            )
        case "plain" | "quiet":
            from lopen.cli.rendering.plain import PlainView

            return PlainView(out, redact=redact, quiet=mode == "quiet", verbose=verbose)
        case "json":
            from lopen.cli.rendering.plain import JsonView

            return JsonView(out, redact=redact)
        case _:
            assert_never(mode)
