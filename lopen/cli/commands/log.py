"""`lopen log`: show the events of a session, in order."""

from __future__ import annotations

import sys
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import OptionalSession
from lopen.core.errors import ExitCode, WrongUsage
from lopen.core.events import AlertRaised, GuardrailRaised

if TYPE_CHECKING:
    from lopen.store.sessions import SessionStore

FollowOption = Annotated[
    bool, typer.Option("-f", "--follow", help="Follow the session until it pauses or ends.")
]
GuardrailsOption = Annotated[
    bool, typer.Option("--guardrails", help="Only events of guardrails, budgets and circuits.")
]
LastOption = Annotated[
    int | None, typer.Option("-n", "--last", min=1, metavar="N", help="Only the last N events.")
]
GUARDRAIL_EVENTS = (GuardrailRaised, AlertRaised)


@command
def log(
    context: CommandContext,
    session: OptionalSession = None,
    follow: FollowOption = False,
    guardrails: GuardrailsOption = False,
    last: LastOption = None,
) -> ExitCode:
    """Show tasks, verifications, verdicts, commits and pauses of a session; with -v also turns and tool calls."""
    from lopen.application.detached import follow as history
    from lopen.application.event_lines import rows
    from lopen.application.open_store import one_session, open_store, store_with
    from lopen.application.reports import INTERRUPTED
    from lopen.cli.rendering.views import subscriber

    if follow and last is not None:
        raise WrongUsage("-f and -n exclude each other", hint="see lopen log --help")
    store = open_store(context)
    if session is not None:
        store = store_with(store, session)
    elsewhere = _elsewhere(context, store, session)
    store = elsewhere or store
    if elsewhere and follow:
        context.warn(f"{session} is built elsewhere: this is its log as of the last checkpoint")
        follow = False
    found = one_session(context, store, session)

    verbose = context.verbose or guardrails
    with subscriber("json" if context.json else "plain", sys.stdout, verbose=verbose) as view:
        every = chain.from_iterable(history(context.root, store, found)) if follow else store.events(found.id)
        wanted = (r for r in every if not guardrails or isinstance(r.event, GUARDRAIL_EVENTS))
        if last is not None and not context.json:  # the others are not shown
            wanted = (r for r in wanted if rows(r, verbose=verbose))
        for record in wanted if last is None else deque(wanted, last):
            view(record)
    if follow and store.load(found.id).status == "running":
        context.warn(f"{INTERRUPTED}; next: lopen resume {found.id}")
    return ExitCode.OK


def _elsewhere(context: CommandContext, store: SessionStore, name: str | None) -> SessionStore | None:
    """Return the sessions of a module that the queue's workers build; None where this project has its session."""
    if name is None or name in store.ids() or not context.has_queue:
        return None
    if store.latest(module=name, unfinished=True) is not None:
        return None
    from lopen.queue.opening import kept_sessions

    return kept_sessions(context, name)
