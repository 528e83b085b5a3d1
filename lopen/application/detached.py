"""A run that survives its terminal: `lopen run --detach` starts it, `lopen attach` follows it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from lopen.application.command_context import CommandContext
from lopen.application.open_store import open_store
from lopen.base.errors import ExitCode, LopenError
from lopen.base.events import IterationStarted, Notice, Recorded
from lopen.storage.folder import state_folder
from lopen.storage.lock import exclusive_lock, is_worked_on, module_holder, module_lock
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session

START_S = 60.0  # for importing the SDK, opening the database and taking the lock
POLL_S = 0.05
# Another process writes the rows, and SQLite does not announce writes: poll often enough for a reader.
FOLLOW_S = 0.3


@dataclass(frozen=True, slots=True)
class DetachedRun:
    """A run in a process of its own. `code` is its exit code if it ended before an iteration began, else None."""

    pid: int
    output: Path
    code: ExitCode | None

    @property
    def printed(self) -> str:
        """Return what it has printed, without the line break at the end."""
        return self.output.read_text("utf-8", "replace").rstrip("\n")


def start_detached(context: CommandContext, module: str, arguments: Sequence[str]) -> DetachedRun:
    """Start `lopen` with these arguments in a process of its own; return when its first iteration begins, or it ends.

    Raises:
        Locked: a process works on the module, or starts to.
        LopenError: it did neither within a minute.
    """
    locks = state_folder(context.root) / "locks"
    with exclusive_lock(locks, f"start-{module}", f"module {module}"):
        with module_lock(context.root, module):
            began = datetime.now(UTC)
        output = state_folder(context.root) / "logs" / f"detached-{module}.log"
        output.parent.mkdir(mode=0o700, exist_ok=True)
        output.unlink(missing_ok=True)
        output.touch(0o600)
        with output.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "lopen", *arguments],  # -P: not a `lopen` in the current folder
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        Thread(target=process.wait, daemon=True).start()  # a server reaps what it started
        deadline = time.monotonic() + START_S
        while process.returncode is None and time.monotonic() < deadline:
            if _iterates(context, module, process.pid, began):
                return DetachedRun(process.pid, output, None)
            time.sleep(POLL_S)
        if process.returncode is None:
            raise LopenError(f"the run did not begin within {START_S:.0f} s", hint=f"its output: {output}")
        code = (
            process.returncode if process.returncode >= 0 else ExitCode.FAILED
        )  # below 0: a signal ended it
        return DetachedRun(process.pid, output, ExitCode(code))


def run_detached(context: CommandContext, module: str, arguments: Sequence[str]) -> ExitCode:
    """Start a run in a process of its own and tell how to follow it, or what it printed if it has ended."""
    run = start_detached(context, module, arguments)
    if run.code is not None:
        context.say(run.printed)
        return run.code
    context.emit("detached", module=module, pid=run.pid, output=str(run.output))
    context.say(f"{module} runs in the background (process {run.pid}); its output: {run.output}")
    context.say("to follow it: lopen attach; to stop it: lopen pause")
    return ExitCode.OK


def _iterates(context: CommandContext, module: str, pid: int, began: datetime) -> bool:
    """Return True if the process holds the module's lock and has begun an iteration, or what comes before its request."""
    from lopen.loop.continuation import CONTINUING
    from lopen.loop.startup import TRYING_COMMANDS

    if module_holder(context.root, module).get("pid") != pid:
        return False
    store = open_store(context)
    session = store.latest(module=module, unfinished=True)
    events = store.events(session.id) if session is not None else ()
    new = [r.event for r in events if r.ts >= began]
    store.database.close()
    return any(
        isinstance(e, IterationStarted)
        or (isinstance(e, Notice) and e.message.startswith((CONTINUING, TRYING_COMMANDS)))
        for e in new
    )


def follow(root: Path, store: SessionStore, session: Session) -> Iterator[Recorded]:
    """Yield the session's events, then new ones until it pauses or ends, or until no process works on it."""
    last = 0
    while True:
        running = store.load(session.id).status == "running" and is_worked_on(root, session.module)
        for record in store.events(session.id, after=last):  # after the look: what came before it is not lost
            last = record.seq
            yield record
        if not running:
            return
        time.sleep(FOLLOW_S)
