"""`lopen confirm`: let a session continue that asks for confirmation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, LopenError
from lopen.cli.command import command
from lopen.cli.parameters import SessionArgument

NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="Note for the model's next prompt.")]


@command
def confirm(context: CommandContext, session: SessionArgument, note: NoteOption = "") -> ExitCode:
    """Confirm that a session may continue; `lopen resume` continues it."""
    from lopen.application.open_store import open_store
    from lopen.application.person_only import require_person
    from lopen.guardrails.resource_limits import CONFIRM_SUBJECT
    from lopen.limits.admin_actions import confirm_budget
    from lopen.limits.stores.opening import open_limits
    from lopen.storage.lock import module_lock
    from lopen.workflow.pauses import VERDICT

    require_person("confirm", context.root)
    store = open_store(context)
    with module_lock(context.root, store.load(session).module):
        found = store.load(session)
        pause = found.pause
        if pause is None or not pause.subject or pause.kind not in ("confirmation", "guardrail"):
            raise LopenError(
                f"{session} does not wait for a confirmation", hint=f"lopen status {found.module}"
            )
        notes = (
            (*found.notes, f"A person looked at this ({pause.message}) and says: {note}")
            if note
            else found.notes
        )
        confirmed = {**found.confirmed, pause.subject: pause.level}
        if pause.subject == CONFIRM_SUBJECT:
            confirm_budget(
                open_limits(context.load().settings.budget, store.database), f"module:{found.module}"
            )
        accepted = found.accepted
        if pause.subject.startswith(VERDICT):
            accepted = (*accepted, f"{pause.message} (note: {note})" if note else pause.message)
        after = replace(found, confirmed=confirmed, notes=notes, accepted=accepted, pause=None)
        store.save(after, datetime.now(UTC))
    context.say(f"confirmed: {pause.message}")
    context.emit("confirmed", session=session, subject=pause.subject, note=note)
    context.say(f"next: lopen resume {session}")
    return ExitCode.OK
