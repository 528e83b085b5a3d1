"""`lopen resume`: going on after an interruption, a pause or a crash."""

from __future__ import annotations

from lopen.cli.completion import OptionalSession
from lopen.cli.context import CommandContext, command
from lopen.cli.options import ResumeOptions
from lopen.errors import ExitCode


@command
def resume(
    context: CommandContext,
    options: ResumeOptions,
    session: OptionalSession = None,
) -> ExitCode:
    """Go on with a session: after an interruption, a pause or a crash. Without a name, the latest unfinished one."""
    from lopen.cli.driving import drive_session

    return drive_session(context, session, options)
