"""A run that survives its terminal: `lopen run --detach` starts it, `lopen attach` follows it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from lopen.application.command_context import CommandContext
from lopen.application.open_store import NOWHERE, open_store
from lopen.core.errors import ExitCode, LopenError
from lopen.core.events import IterationStarted, Notice, Recorded
from lopen.store.folder import exclusive_lock, is_worked_on, module_holder, module_lock, state_folder
from lopen.store.sessions import SessionStore, event_lines, newest_event
from lopen.workflow.session import Session

START_S = 60.0  # for importing the SDK, opening the database and taking the lock
STOP_S = 10.0
POLL_S = 0.1
# Another process writes the rows, and SQLite does not announce writes: poll often enough for a reader.
FOLLOW_S = 0.3
ENDS_S = 5.0  # for the process of a session that has paused or ended
MOST_LINES = 1_000


@dataclass(frozen=True, slots=True)
class DetachedRun:
    """A run in a process of its own. `code` is its exit code if it ended before an iteration began, else None."""

    pid: int
    output: Path
    code: ExitCode | None

    @property
    def printed(self) -> str:
        """Return its output, without the line break at the end."""
        return self.output.read_text("utf-8", "replace").rstrip("\n")


def start_detached(context: CommandContext, module: str, arguments: Sequence[str]) -> DetachedRun:
    """Start `lopen` with these arguments in a process of its own; return when its first iteration begins, or it ends.

    Raises:
        Locked: a process works on the module, or starts to.
        LopenError: it did neither within a minute; it is ended.
    """
    locks = state_folder(context.root) / "locks"
    with exclusive_lock(locks, f"start-{module}", f"module {module}"):
        with module_lock(context.root, module):
            store = open_store(context)
            newest = newest_event(store)
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
        Thread(target=process.wait, daemon=True).start()  # a server reaps its children
        deadline = time.monotonic() + START_S
        try:
            while process.returncode is None and time.monotonic() < deadline:
                if module_holder(context.root, module).get("pid") == process.pid:
                    if store.database.path == NOWHERE:  # the process has made the project's first database
                        store = open_store(context)
                    if _has_begun(store, module, newest):
                        return DetachedRun(process.pid, output, None)
                time.sleep(POLL_S)
            if process.returncode is None:
                hint = f"its output: {output}"
                raise LopenError(f"the run did not begin within {START_S:.0f} s and was ended", hint=hint)
        except BaseException:  # also Ctrl-C: nobody would know of a run that goes on and spends
            _end(process)
            raise
        finally:
            store.database.close()
        code = process.returncode if process.returncode >= 0 else ExitCode.FAILED  # below 0: by a signal
        return DetachedRun(process.pid, output, ExitCode(code))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run: it stops its own commands; if it does not, kill it."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_detached(context: CommandContext, module: str, arguments: Sequence[str]) -> ExitCode:
    """Start a run in a process of its own and tell how to follow it, or show its output if it has ended."""
    run = start_detached(context, module, arguments)
    if run.code is not None:
        if context.json:
            sys.stdout.write(f"{run.printed}\n")  # lines of JSON, as the process wrote them
        context.say(run.printed)
        return run.code
    context.emit("detached", module=module, pid=run.pid, output=str(run.output))
    context.say(f"{module} runs in the background (process {run.pid}); its output: {run.output}")
    context.say("to follow it: lopen attach; to stop it: lopen pause")
    return ExitCode.OK


def _has_begun(store: SessionStore, module: str, after: int) -> bool:
    """Return True if a run of the module has begun an iteration, or the preparation of its request."""
    lines = event_lines(store, after=after, limit=MOST_LINES)
    return any(_begins(json.loads(line.text)) for line in lines if line.session.startswith(f"{module}-"))


def _begins(event: Mapping[str, Any]) -> bool:
    from lopen.loop.continuation import CONTINUING
    from lopen.loop.startup import TRYING_COMMANDS

    if event["event"] == Notice.name:
        return str(event["message"]).startswith((CONTINUING, TRYING_COMMANDS))
    return bool(event["event"] == IterationStarted.name)


def follow(
    root: Path,
    store: SessionStore,
    session: Session,
    left: Callable[[], bool] = lambda: False,
    after: int = 0,
) -> Iterator[list[Recorded]]:
    """Yield the session's events `after` one, then new ones, a few times a second.

    Ends when the session pauses or ends, when no process works on it, or when the reader has `left`.
    """
    last = after
    while not left():
        running = is_worked_on(root, session.module) and store.load(session.id).status == "running"
        # after the look, so that no earlier event is lost
        records = list(store.events(session.id, after=last))
        last = records[-1].seq if records else last
        yield records
        if not running:
            break
        time.sleep(FOLLOW_S)
    for _ in range(round(ENDS_S / FOLLOW_S)):  # so that the person's next command finds the module free
        if left() or not is_worked_on(root, session.module):
            return
        time.sleep(FOLLOW_S)
