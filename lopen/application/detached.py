"""A run that survives its terminal: `lopen run --detach` starts it, `lopen attach` follows it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.application.open_store import open_store
from lopen.base.errors import ExitCode, LopenError
from lopen.base.events import IterationStarted, Recorded
from lopen.storage.folder import state_folder
from lopen.storage.lock import is_running, lock_holder
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session

START_S = 60.0  # for importing the SDK, opening the database and taking the lock
POLL_S = 0.05
# Another process writes the rows, and SQLite does not announce writes: poll often enough for a reader.
FOLLOW_S = 0.3


def start_detached(context: CommandContext, module: str, arguments: Sequence[str]) -> ExitCode:
    """Start `lopen` with these arguments in a process of its own; return when its first iteration begins.

    If it ends before that (at the gate, for example), show what it printed and return its exit code.
    """
    began = datetime.now(UTC)
    output = state_folder(context.root) / "logs" / f"detached-{module}.log"
    output.parent.mkdir(mode=0o700, exist_ok=True)
    output.unlink(missing_ok=True)
    output.touch(0o600)
    with output.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lopen", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        if _iterates(context, module, process.pid, began):
            context.emit("detached", module=module, pid=process.pid, output=str(output))
            context.say(f"{module} runs in the background (process {process.pid}); its output: {output}")
            context.say("to follow it: lopen attach; to stop it: lopen pause")
            return ExitCode.OK
        time.sleep(POLL_S)
    if process.poll() is None:
        raise LopenError(f"the run did not begin within {START_S:.0f} s", hint=f"its output: {output}")
    context.say(output.read_text("utf-8", "replace").rstrip("\n"))
    return ExitCode(process.returncode)


def _iterates(context: CommandContext, module: str, pid: int, began: datetime) -> bool:
    """Return True if the process holds the module's lock and has begun an iteration."""
    if lock_holder(context.root / ".lopen" / "locks", f"module-{module}").get("pid") != pid:
        return False
    store = open_store(context)
    session = store.latest(module=module, unfinished=True)
    events = store.events(session.id) if session is not None else ()
    begun = any(r.ts >= began and isinstance(r.event, IterationStarted) for r in events)
    store.database.close()
    return begun


def is_worked_on(root: Path, session: Session) -> bool:
    """Return True if a process holds the lock of the session's module."""
    return is_running(lock_holder(root / ".lopen" / "locks", f"module-{session.module}"))


def follow(root: Path, store: SessionStore, session: Session) -> Iterator[Recorded]:
    """Yield the session's events, then new ones until it pauses or ends, or until no process works on it."""
    last = 0
    while True:
        running = store.load(session.id).status == "running" and is_worked_on(root, session)
        for record in store.events(session.id, after=last):  # after the look: what came before it is not lost
            last = record.seq
            yield record
        if not running:
            return
        time.sleep(FOLLOW_S)
