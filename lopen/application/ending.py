"""The end of a run: its last line, the person's notification command and the exit code."""

from __future__ import annotations

import os
import subprocess

from lopen.application.command_context import CommandContext
from lopen.core.errors import ExitCode
from lopen.loop.context import SessionContext
from lopen.workflow.session import Session


def paused_by_person(session: Session) -> bool:
    """True for a session that a person asked to pause."""
    return session.status == "paused" and session.pause is not None and session.pause.kind == "person"


def finish(context: CommandContext, loop: SessionContext, session: Session, only: str) -> ExitCode:
    """Print the last line, run the notification command and return the exit code."""
    code, line, message = ExitCode.OK, "", f"{session.module} is complete"
    if session.status == "paused" and session.pause is not None:
        code, message = ExitCode.PERSON_NEEDED, session.pause.message
        leaves = context.presentation.detaches() and paused_by_person(session)
        line = f"next: {session.pause.command}" if context.resumable and not leaves else ""
        if only == "requirement_gathering" and session.pause.kind == "gate":
            code = ExitCode.OK
    elif not session.finished:
        loop.record.journal.change(status="paused")  # nothing runs any more, and nothing was interrupted
        phase = only.replace("_", " ")
        line = f"{phase} is complete; next: lopen run {session.module}"
        message = f"{phase} of {session.module} is complete"
    notify(loop, code, message)
    if line:
        context.say(line)
    elif session.finished and context.resumable:
        tell_next(context, session)
    return code


_DESKTOP = (
    "HOME",
    "USER",
    "LANG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
)


def tell_next(context: CommandContext, session: Session) -> None:
    """Say where the work of a complete session is, or the commands that show, merge and propose it."""
    from lopen.application.details import closing_lines

    if not context.json:
        for line in closing_lines(context, session):
            context.say(line)


def notify(loop: SessionContext, code: ExitCode, message: str) -> None:
    """Run the person's notification command on exit 3 and at the end, with what a desktop's notifier needs."""
    command = loop.settings.notify.command
    session = loop.record.journal.session
    if not command:
        return
    try:
        subprocess.run(  # noqa: S602 - from the person's configuration, never the repository's
            command,
            shell=True,
            check=False,
            timeout=30,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={
                **{name: os.environ[name] for name in _DESKTOP if name in os.environ},
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LOPEN_MESSAGE": message,
                "LOPEN_MODULE": session.module,
                "LOPEN_SESSION": session.id,
                "LOPEN_EXIT_CODE": str(int(code)),
            },
        )
    except (OSError, subprocess.TimeoutExpired):
        return
