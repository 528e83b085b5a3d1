"""Why an unfinished session stands still, as its last run said it, and the command that goes on."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lopen.base.events import SessionFailed, from_fields
from lopen.storage.lock import is_running, lock_holder
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session

CUT_OFF = "its last run was cut off; everything up to then is saved"


@dataclass(frozen=True, slots=True)
class Standstill:
    """The cause, how to mend it where the run said so, and the command that goes on."""

    cause: str
    mend: str
    command: str


def standstill(root: Path, store: SessionStore, session: Session) -> Standstill | None:
    """What an unfinished session waits for; None where it is complete, or a process works on it."""
    command = f"lopen resume {session.id}"
    if session.pause is not None:
        return Standstill(session.pause.message, "", session.pause.command)
    if session.status == "failed":
        return Standstill(*_last_words(store, session.id), command)
    if session.status == "paused":  # by a revert or a skip
        return Standstill("", "", command)
    if session.finished or is_running(lock_holder(root / ".lopen" / "locks", f"module-{session.module}")):
        return None
    return Standstill(CUT_OFF, "", command)


def _last_words(store: SessionStore, session_id: str) -> tuple[str, str]:
    """What the newest failure said, and its hint; empty where that was moved out, or cannot be read."""
    row = store.database.connection.execute(
        "SELECT body FROM events WHERE session=? AND name=? ORDER BY seq DESC LIMIT 1",
        (session_id, SessionFailed.name),
    ).fetchone()
    with suppress(ValueError, TypeError):
        found = from_fields(SessionFailed.name, json.loads(row["body"])) if row else None
        if isinstance(found, SessionFailed):
            return found.message, found.hint
    return "", ""


def standstill_lines(root: Path, store: SessionStore, session: Session) -> list[str]:
    """The same for a person, as the last lines of what is shown of a session."""
    found = standstill(root, store, session)
    if found is None:
        return []
    word = "failed" if session.status == "failed" else "waits"
    told = [f"{word}: {found.cause}"] if found.cause else []
    told += [f"  {line}" for line in found.mend.splitlines()]
    return [*told, f"next: {found.command}"]
