"""`lopen pause`: stop a running session at its next safe point."""

from __future__ import annotations

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode
from lopen.cli.command import command
from lopen.cli.parameters import OptionalSession


@command
def pause(context: CommandContext, session: OptionalSession = None) -> ExitCode:
    """Stop a running session at its next safe point; it ends with exit code 3, and `lopen resume` continues it."""
    from lopen.application.decisions import ask_to_pause
    from lopen.application.open_store import one_session, open_store
    from lopen.application.person_only import require_person

    require_person("pause", context.root)
    store = open_store(context)
    found = ask_to_pause(context, store, one_session(store, session).id)
    context.say(f"{found.id} stops at its next safe point, after the current turn")
    context.emit("pause_requested", session=found.id)
    context.say(f"to continue it: lopen resume {found.id}")
    return ExitCode.OK
