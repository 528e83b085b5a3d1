"""`lopen attach`: follow a running session from any terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, PersonNeeded, Stopped
from lopen.cli.command import command
from lopen.cli.parameters import NoColorOption, OptionalSession

if TYPE_CHECKING:
    from lopen.cli.rendering.frame import Snapshot
    from lopen.storage.sessions import SessionStore


@command
def attach(
    context: CommandContext, session: OptionalSession = None, no_color: NoColorOption = False
) -> ExitCode:
    """Follow a running session until it pauses or ends; Ctrl-C leaves it running.

    Exit codes are those of the run: 0 complete, 1 failed, 3 a person is needed.
    """
    from lopen.application.detached import follow
    from lopen.application.open_store import one_session, open_store
    from lopen.application.waiting import standstill
    from lopen.cli.rendering import mode_for, subscriber
    from lopen.storage.lock import is_worked_on

    store = open_store(context)
    found = one_session(store, session)
    mode = mode_for(sys.stdout, json=context.json, quiet=False)
    try:
        with subscriber(
            mode,
            sys.stdout,
            snapshot=lambda: _snapshot(store, found.id),
            color=not no_color,
            verbose=context.verbose,
        ) as view:
            for record in follow(context.root, store, found):
                view(record)
    except (Stopped, KeyboardInterrupt):
        if is_worked_on(context.root, found.module):
            context.say(f"detached; {found.id} goes on. To follow it again: lopen attach")
            return ExitCode.OK
        raise
    ended = store.load(found.id)
    if ended.finished:
        return ExitCode.OK
    waits = standstill(context.root, store, ended)
    if waits is not None and ended.status == "paused":
        raise PersonNeeded(waits.cause or f"{found.id} is paused", command=waits.command)
    context.say(f"{waits.cause if waits else 'the run ended'}; next: lopen resume {found.id}")
    return ExitCode.FAILED


def _snapshot(store: SessionStore, session_id: str) -> Snapshot:
    """Return the tree and the totals as the run saved them."""
    from lopen.cli.rendering.frame import Snapshot

    return Snapshot(tree=store.load(session_id).tree)
