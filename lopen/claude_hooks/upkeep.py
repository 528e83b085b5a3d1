"""The hooks' slow part: their log, and the upkeep of the project's state at the start of a session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError
from lopen.store.log_rotation import HOOK_LOG, LogFile, LogLimits


def logged(lines: Sequence[str], root: str) -> None:
    """A line each into the project's log of the hooks; where it cannot be written, it is left."""
    log, now = LogFile(Path(root) / ".lopen" / "logs" / HOOK_LOG, LogLimits()), datetime.now(UTC)
    stamp = now.isoformat(timespec="milliseconds")
    with suppress(OSError, LopenError):
        for line in lines:
            log.write(json.dumps({"ts": stamp, "level": "warning", "message": line}), now)


def clean(root: str) -> None:
    """Clean the project's state by the settings in force; log what goes wrong."""
    from lopen.settings.sources import load
    from lopen.store.database import Database
    from lopen.store.sessions import SessionStore
    from lopen.store.upkeep import Upkeep

    folder = Path(root) / ".lopen"
    if not (folder / "state.db").exists():
        return

    def warn(text: str) -> None:
        logged([text], root)

    try:
        with closing(Database(folder / "state.db", timeout_s=0.5)) as database:
            settings = load(Path(root)).settings
            Upkeep(SessionStore(database), folder, settings, SystemClock(), warn=warn).clean()
    except Exception as error:  # noqa: BLE001 - the answer is given: a fault of the cleaning must not take it back
        warn(f"the state was not cleaned ({error})")
