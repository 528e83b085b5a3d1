"""`lopen confirm`: let a session continue that asks for confirmation."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode
from lopen.cli.command import command
from lopen.cli.parameters import SessionArgument

NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="Note for the model's next prompt.")]


@command
def confirm(context: CommandContext, session: SessionArgument, note: NoteOption = "") -> ExitCode:
    """Confirm that a session may continue; `lopen resume` continues it."""
    from lopen.application import decisions
    from lopen.application.open_store import open_store
    from lopen.application.person_only import require_person

    require_person("confirm", context.root)
    pause = decisions.confirm(context, open_store(context), session, note)
    context.say(f"confirmed: {pause.message}")
    context.emit("confirmed", session=session, subject=pause.subject, note=note)
    context.say(f"next: lopen resume {session}")
    return ExitCode.OK
