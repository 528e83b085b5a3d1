"""The reason why an unfinished session does not run, and the command that continues it."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lopen.application.session_report import removed_work, reverts
from lopen.core.errors import LopenError
from lopen.core.events import SessionFailed, TurnEnded, from_fields
from lopen.example import APPROVAL_NOTE
from lopen.store.audit import last_failure
from lopen.store.folder import is_worked_on
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session

APPROVED = "the specification is approved by now"
UNDO, NEW_DEMO = "lopen revert --undo", "lopen demo"
LOST_DEMO = {UNDO: "to undo the revert", NEW_DEMO: "to build another one"}
INTERRUPTED = "the last run was interrupted; everything up to then is saved"


@dataclass(frozen=True, slots=True)
class Standstill:
    """The cause, how to fix it if the run says so, and the command that continues the session."""

    cause: str
    mend: str
    command: str


def standstill(root: Path, store: SessionStore, session: Session) -> Standstill | None:
    """Return what a session waits for; None if it is complete or a process works on it."""
    command = demo_command(root, store, session) or f"lopen resume {session.id}"
    if session.pause is not None and session.pause.kind == "gate" and _approved(root, store, session):
        return Standstill(APPROVED, "", command)
    if session.pause is not None:
        resumes = session.pause.command == f"lopen resume {session.id}"
        return Standstill(session.pause.message, "", command if resumes else session.pause.command)
    if session.status == "failed":
        return Standstill(*_last_failure(store, session.id), command)
    if session.status == "paused":  # by a revert or a skip
        return Standstill(lost_demo(command), "", command)
    if shown_status(root, session) != "interrupted":
        return None
    return Standstill(INTERRUPTED, "", command)


def demo_command(root: Path, store: SessionStore, session: Session) -> str:
    """Return the command that goes on with the session of a demo and its recorded answers; "" for any other session.

    The answers fit only the work they were recorded with: after a revert its undo, and after both a new demo. Once
    another model has answered, the session is one like any other.
    """
    given = store.approval(session.module)
    if not given or given.note != APPROVAL_NOTE or _another_answered(root, store, session):
        return ""
    before = reverts(store, session)
    if before and not before[-1][1].undo:
        return UNDO
    return NEW_DEMO if removed_work(store, session).at else f"lopen demo {shlex.quote(str(root))}"


def _another_answered(root: Path, store: SessionStore, session: Session) -> bool:
    """Return True if a model answered in a demo: its answers are recorded anew, and after a revert there are no others."""
    from lopen.application.confinement import recording_path

    if recording_path(root, session.id).exists():
        return True
    times = [at for at, event in reverts(store, session)[-1:] if not event.undo]
    times += removed_work(store, session).at.values()
    if not times:
        return False
    query = "SELECT 1 FROM events WHERE session=? AND name=? AND ts>? LIMIT 1"
    values = (session.id, TurnEnded.name, min(times))
    return store.database.connection.execute(query, values).fetchone() is not None


def lost_demo(command: str) -> str:
    """Return the reason why a demo with that `demo_command` cannot go on; "" if it can."""
    return "a demo cannot go on after a revert" if command in LOST_DEMO else ""


def require_intact(root: Path, command: str) -> None:
    """Raise `LopenError` if a demo with that `demo_command` in `root` cannot go on."""
    if lost := lost_demo(command):
        hint = f"{LOST_DEMO[NEW_DEMO]}: {NEW_DEMO}, or with a new folder"
        if command == UNDO:
            hint = f"{LOST_DEMO[UNDO]}: {UNDO} -C {shlex.quote(str(root))}\n{hint}"
        raise LopenError(f"{root}: {lost}", hint=hint)


def shown_status(root: Path, session: Session) -> str:
    """Return the session's status; "interrupted" where it should run and no process works on it."""
    if session.status == "running" and not is_worked_on(root, session.module):
        return "interrupted"
    return session.status


def present_state(root: Path, store: SessionStore, session: Session) -> dict[str, Any]:
    """Return what has become of a session's record by now: its status, and what it waits for."""
    found, pause = standstill(root, store, session), session.pause
    kind = pause.kind if pause is not None else shown_status(root, session)
    waiting = None if found is None else {"kind": kind, "message": found.cause, "command": found.command}
    return {"status": shown_status(root, session), "waiting": waiting}


def _approved(root: Path, store: SessionStore, session: Session) -> bool:
    """Return True if a person approved the specification as it is now, after the run had stopped for that."""
    from lopen.specification.drift import section_hashes, spec_hash
    from lopen.specification.modules import spec_path
    from lopen.specification.spec import load_specification

    given = store.approval(session.module)
    if given is None:
        return False
    try:
        spec = load_specification(spec_path(root, session.module), module=session.module)
    except LopenError:
        return False
    return given.spec_hash == spec_hash(section_hashes(spec))


def _last_failure(store: SessionStore, session_id: str) -> tuple[str, str]:
    """Return message and hint of the newest failure; empty if it is archived or unreadable."""
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
    """Return the same as lines for a person, which end the report on a session."""
    found = standstill(root, store, session)
    if found is None:
        return []
    label = "failed" if session.status == "failed" else "waits"
    lines = [f"{label}: {found.cause}"] if found.cause else []
    lines += [f"  {line}" for line in found.mend.splitlines()]
    if failure := last_failure(store.database, session.id):
        lines += failure.excerpt().splitlines()
    return [*lines, f"next: {found.command}"]
