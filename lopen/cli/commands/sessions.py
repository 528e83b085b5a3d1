"""`lopen session`: list and delete sessions."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.event_lines import step_title
from lopen.cli.command import command, group
from lopen.cli.parameters import SessionArgument
from lopen.core.errors import ExitCode, LopenError, WrongUsage

app = group("List or delete sessions.", default="list")

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; also delete an unfinished session.")]


@app.command("list")
@command
def listing(context: CommandContext) -> ExitCode:
    """List sessions, newest first; archived ones last."""
    from lopen.application.open_store import open_store
    from lopen.application.reports import archived_row, read_session
    from lopen.store.archives import archived_sessions

    store = open_store(context)
    for session in store.readable(store.ids()):
        row = read_session(context.root, store, session).row()
        state = row["status"]
        context.emit("session", **row)
        if not session.finished:
            state = f"{state}, {step_title(row['step'])}"
        context.say(f"{session.id}: {state}, {row['tasks_done']}/{row['tasks']} tasks")
    in_archive = archived_sessions(store.database)
    for old in in_archive:
        context.emit("session", **archived_row(old))
        context.say(
            f"{old.session}: archived, {'complete' if old.finished else 'not complete'}, {old.tasks_done}/{old.tasks} tasks"
        )
    if not store.ids() and not in_archive:
        context.say("no sessions yet; to start one: lopen run MODULE")
    return ExitCode.OK


@app.command()
@command
def delete(context: CommandContext, session: SessionArgument, yes: YesOption = False) -> ExitCode:
    """Delete a session's record, archived or not. Its commits and its branch remain. At a terminal it asks first."""
    from lopen.application.open_store import one_session, open_store, store_with
    from lopen.store.archives import erase_session
    from lopen.store.folder import module_lock

    store = open_store(context)
    found = one_session(context, store_with(store, session), session)
    with module_lock(context.root, found.module):  # never while a run uses it
        asked = not yes and not context.json
        agreed = context.presentation.confirms(f"delete {found.id}?") if asked else None
        if agreed is False:
            raise LopenError("nothing was deleted", hint=f"to delete it: lopen session delete {found.id}")
        if agreed is None and not yes and not found.finished:
            hint = f"to delete it anyway: lopen session delete {found.id} --yes"
            raise WrongUsage(f"{found.id} is not finished", hint=hint)
        erase_session(store, found)
    context.say(f"deleted {found.id}")
    context.emit("deleted", session=found.id)
    return ExitCode.OK
