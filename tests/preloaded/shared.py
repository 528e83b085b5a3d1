"""One preloaded process for all the commands of a test process, started with the first of them."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.preloaded.runs import Preloaded
from tests.preloaded.started import StartedCommand
from tests.ran import Ran


@cache
def _shared() -> Preloaded:
    preloaded = Preloaded()
    atexit.register(preloaded.__exit__, None, None, None)
    return preloaded


def run_lopen(
    cwd: Path,
    environment: Mapping[str, str],
    arguments: Sequence[str],
    stdin: str | None = None,
    arrange: Sequence[Sequence[Any]] = (),
) -> Ran:
    """Run the command to its end: the whole of it, but for the start of Python and the imports."""
    run = _shared().run
    return run(cwd, environment, arguments, orphans="left", stdin=stdin or "", arrange=arrange).ran


def start_lopen(
    cwd: Path, environment: Mapping[str, str], arguments: Sequence[str], streams: Sequence[int] = ()
) -> StartedCommand:
    """Start the command; the caller ends it. Its output goes into pipes, or where its three `streams` lead."""
    return _shared().start(cwd, environment, arguments, streams)
