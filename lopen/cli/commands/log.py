"""`lopen log`: show what happened in a session, in order."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode
from lopen.base.events import AlertRaised, CircuitChanged, EscalationChanged, GuardrailRaised, Recorded
from lopen.cli.command import command
from lopen.cli.parameters import OptionalSession

FollowOption = Annotated[
    bool, typer.Option("-f", "--follow", help="Follow the session until it pauses or ends.")
]
GuardrailsOption = Annotated[
    bool, typer.Option("--guardrails", help="Only events of guardrails, budgets and circuits.")
]
GUARDRAIL_EVENTS = (GuardrailRaised, EscalationChanged, CircuitChanged, AlertRaised)
# Another process writes the rows, and SQLite does not announce writes: poll often enough for a reader.
POLL_S = 0.3


@command
def log(
    context: CommandContext,
    session: OptionalSession = None,
    follow: FollowOption = False,
    guardrails: GuardrailsOption = False,
) -> ExitCode:
    """Show turns, tool calls, verdicts, guardrails and commits of a session."""
    from lopen.application.open_store import one_session, open_store, store_with
    from lopen.application.waiting import INTERRUPTED
    from lopen.cli.rendering import subscriber
    from lopen.storage.archives import archive_path
    from lopen.storage.lock import is_running, lock_holder

    store = open_store(context)
    if session is not None and archive_path(store.archives, session) is not None:
        store = store_with(store, session)
    found = one_session(store, session)

    def history() -> Iterator[Recorded]:
        last = 0
        while True:
            for record in store.events(found.id, after=last):
                last = record.seq
                yield record
            if not follow or store.load(found.id).status != "running":
                return
            if not is_running(lock_holder(context.root / ".lopen" / "locks", f"module-{found.module}")):
                context.warn(f"{INTERRUPTED}; next: lopen resume {found.id}")
                return
            time.sleep(POLL_S)

    with subscriber("json" if context.json else "plain", sys.stdout, verbose=context.verbose) as view:
        for record in history():
            if not guardrails or isinstance(record.event, GUARDRAIL_EVENTS):
                view(record)
    return ExitCode.OK
