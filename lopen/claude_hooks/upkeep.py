"""The hooks' slow part: their log, and the upkeep of the project's state at the start of a session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from lopen.base.clock import SystemClock
from lopen.base.errors import LopenError
from lopen.retention.log_rotation import LogFile
from lopen.retention.policy import LogLimits

NAME = "hooks.jsonl"


def logged(lines: Sequence[str], root: str) -> None:
    """A line each into the project's log of the hooks; where it cannot be written, it is left."""
    log, now = LogFile(Path(root) / ".lopen" / "logs" / NAME, LogLimits()), datetime.now(UTC)
    stamp = now.isoformat(timespec="milliseconds")
    with suppress(OSError, LopenError):
        for line in lines:
            log.write(json.dumps({"ts": stamp, "level": "warning", "message": line}), now)


def tidied(root: str) -> None:
    """Clean the project's state by the settings in force; what goes wrong is raised."""
    from lopen.retention.policy import retention_policy
    from lopen.retention.upkeep import Upkeep
    from lopen.settings.sources import load
    from lopen.storage.database import Database
    from lopen.storage.sessions import SessionStore

    folder = Path(root) / ".lopen"
    if not (folder / "state.db").exists():
        return
    policy = retention_policy(load(Path(root)).settings)
    with closing(Database(folder / "state.db", timeout_s=0.5)) as database:
        Upkeep(
            SessionStore(database), folder, policy, SystemClock(), warn=lambda text: logged([text], root)
        ).clean()
