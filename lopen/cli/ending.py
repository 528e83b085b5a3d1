"""How a run begins to cost and how it ends, in words: confirming models, the last lines."""

from __future__ import annotations

import json
import shlex
import subprocess

from lopen.cli.context import CommandContext
from lopen.errors import ExitCode, PersonNeeded
from lopen.ports import Ports
from lopen.settings.keys import Value
from lopen.settings.sources import Loaded
from lopen.workflow.session import Session


def confirm_models(context: CommandContext, loaded: Loaded) -> None:
    """Models that only the repository names are confirmed once by the person (contract §13)."""
    from lopen.cli.terminal import at_terminal, yes
    from lopen.settings.trust import confirm

    for model in loaded.unconfirmed:
        question = f"this repository asks for {model.key} = {model.value!r}; use it?"
        if context.json or not at_terminal():
            raise PersonNeeded(
                f"this repository's configuration names a model that you have not confirmed: {model.key} = {model.value!r}",
                command=f"lopen config set --user {model.key} {shlex.quote(as_argument(model.value))}",
                hint="at a terminal lopen asks, and a yes holds for this project alone; the command below makes it yours"
                " for every project",
            )
        if not yes(question):
            raise PersonNeeded(f"{model.key} was not confirmed", command="lopen config show")
        confirm(context.root, model.key, model.value)


def as_argument(value: Value) -> str:
    """A setting's value as `lopen config set` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def finish(context: CommandContext, ports: Ports, session: Session, only: str) -> ExitCode:
    """The last lines and the exit code; a person who asked to be told is told."""
    code, line = ExitCode.OK, ""
    if session.status == "paused" and session.pause is not None:
        code = ExitCode.PERSON_NEEDED
        line = f"go on with: {session.pause.command}" if context.resumable else ""
        if only == "requirement_gathering" and session.pause.kind == "gate":
            code = ExitCode.OK
    elif not session.finished:
        ports.journal.change(status="paused")  # nothing runs any more, and nothing was cut off
        line = f"{only} is done; go on with: lopen run {session.module}"
    notify(ports, code)
    if line:
        context.say(line)
    return code


def notify(ports: Ports, code: ExitCode) -> None:
    """Run the person's own notification command on exit 3 and at the end."""
    command = ports.settings.notify.command
    session = ports.journal.session
    if not command:
        return
    message = session.pause.message if session.pause else f"{session.module} is complete"
    try:
        subprocess.run(  # noqa: S602 - the person's own configuration, never the repository's
            command,
            shell=True,
            check=False,
            timeout=30,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LOPEN_MESSAGE": message,
                "LOPEN_MODULE": session.module,
                "LOPEN_SESSION": session.id,
                "LOPEN_EXIT_CODE": str(int(code)),
            },
        )
    except (OSError, subprocess.TimeoutExpired):
        return
