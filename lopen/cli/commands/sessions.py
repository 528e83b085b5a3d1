"""`lopen session`: list and delete sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.event_lines import step_title
from lopen.cli.command import command, group
from lopen.cli.parameters import SessionArgument
from lopen.core.errors import ExitCode, LopenError, WrongUsage
from lopen.workflow.next_step import displayed_step

if TYPE_CHECKING:
    from lopen.store.sessions import SessionStore
    from lopen.workflow.session import Session

app = group("List or delete sessions.", default="list")

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; also delete an unfinished session.")]


@app.command("list")
@command
def listing(context: CommandContext) -> ExitCode:
    """List sessions, newest first; archived ones last."""
    from lopen.application.open_store import open_store
    from lopen.application.reports import session_summary
    from lopen.store.archives import archived_sessions

    store = open_store(context)
    for session in store.readable(store.ids()):
        row = session_summary(context.root, store, session)
        state = row["status"]
        context.emit("session", **row)
        if not session.finished:
            state = f"{state}, {step_title(displayed_step(session))}"
        context.say(f"{session.id}: {state}, {row['tasks_done']}/{row['tasks']} tasks")
    in_archive = archived_sessions(store.database)
    for old in in_archive:
        context.emit("session", **session_summary(context.root, store, old), archived_at=old.archived_at)
        context.say(f"{old.session}: archived, complete, {old.tasks_done}/{old.tasks} tasks")
    if not store.ids() and not in_archive:
        context.say("no sessions yet; to start one: lopen run MODULE")
    return ExitCode.OK


@app.command()
@command
def delete(context: CommandContext, session: SessionArgument, yes: YesOption = False) -> ExitCode:
    """Delete a session's record, archived or not. Its commits and its branch remain. At a terminal it asks first."""
    from lopen.application.open_store import open_store
    from lopen.store.archives import erase_session
    from lopen.store.folder import module_lock

    store = open_store(context)
    found = _named(store, session)
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


def _named(store: SessionStore, wanted: str) -> Session:
    """Return the session with that id, archived or not, or the module's latest."""
    from lopen.application.open_store import store_with

    return store.latest(module=wanted) or store_with(store, wanted).load(wanted)
