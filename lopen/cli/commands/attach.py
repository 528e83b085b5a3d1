"""`lopen attach`: follow a running session from any terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import NoColorOption, OptionalSession
from lopen.core.errors import ExitCode, PersonNeeded, Stopped
from lopen.workflow.pauses import asks_now

if TYPE_CHECKING:
    from lopen.cli.rendering.live import Snapshot, ViewKey
    from lopen.store.sessions import SessionStore
    from lopen.workflow.session import Session

EARLIER = 15  # events that are shown of those before


@command
def attach(
    context: CommandContext, session: OptionalSession = None, no_color: NoColorOption = False
) -> ExitCode:
    """Follow a running session until it pauses or ends; Ctrl-C leaves it running.

    Exit codes are those of the run: 0 complete, 1 failed, 3 a person is needed.
    """
    from lopen.application.detached import follow
    from lopen.application.event_lines import counted, rows
    from lopen.application.open_store import one_session, open_store
    from lopen.application.reports import read_session
    from lopen.cli.rendering.views import mode_for, subscriber
    from lopen.store.folder import is_worked_on

    store = open_store(context)
    found = one_session(context, store, session)
    shown = Shown(context, store, found.id)
    mode = mode_for(sys.stdout, json=context.json, quiet=False)
    lines = (
        [] if context.json else [r.seq for r in store.events(found.id) if rows(r, verbose=context.verbose)]
    )
    after = lines[-EARLIER - 1] if len(lines) > EARLIER else 0
    if after:
        context.say(f"{counted(len(lines) - EARLIER, 'earlier event')}: lopen log {found.module}")
    try:
        with subscriber(
            mode,
            sys.stdout,
            snapshot=shown.snapshot,
            color=not no_color,
            verbose=context.verbose,
            keys=shown.keys() if mode == "live" else None,
        ) as view:
            for records in follow(context.root, store, found, lambda: shown.left, after):
                shown.stale = bool(records)
                for record in records:
                    view(record)
                if mode == "plain" and records and (told := shown.asked()):
                    context.say(told)
    except (Stopped, KeyboardInterrupt):
        if not is_worked_on(context.root, found.module):
            raise
        shown.left = True
    if shown.left:
        context.say(f"detached; {found.id} goes on. To follow it again: lopen attach")
        return ExitCode.OK
    ended = store.load(found.id)
    if ended.finished:
        return ExitCode.OK
    waits = read_session(context.root, store, ended).waits
    if waits is not None and ended.status == "paused":
        raise PersonNeeded(waits.message or f"{found.id} is paused", command=waits.command)
    context.say(f"{waits.message if waits else 'the run ended'}; next: lopen resume {found.id}")
    return ExitCode.FAILED


class Shown:
    """The live view of a session that another process works on, and its keys."""

    def __init__(self, context: CommandContext, store: SessionStore, session_id: str) -> None:
        self.left = False
        self.stale = True  # there were events since the snapshot was taken
        self._context = context
        self._store = store
        self._id = session_id
        self._taken: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """Return tree, spend and limits as the run saved them, read once for the events that came together."""
        from lopen.application.open_store import looked_up
        from lopen.cli.rendering.live import snapshot_of

        if self._taken is None or self.stale:
            session = self._store.load(self._id)
            budgets = looked_up(self._context, self._store.database).budgets
            limit = session.limits.max_cost_usd
            if limit is None:
                limit = self._context.load().settings.budget.max_cost_usd
            own = (b for b in budgets if b.budget_id == f"session:{self._id}")
            self._taken, self.stale = snapshot_of(session.tree, own, limit), False
        return self._taken

    def keys(self) -> dict[str, ViewKey]:
        """Return the keys of a run's view, and a key that leaves it."""
        from lopen.cli.rendering.live import ViewKey
        from lopen.cli.terminal import view_keys

        return view_keys(self._context, self._session) | {"q": ViewKey("detach", self._leave)}

    def asked(self) -> str:
        """Return what the run asks a person at its own terminal, with the command that answers it; "" if nothing."""
        pause = self._store.load(self._id).pause
        return (
            f"{pause.message}; to answer it: {pause.command}" if pause is not None and asks_now(pause) else ""
        )

    def _session(self) -> Session:
        """Return the session as it is stored now, over a connection of the calling thread."""
        from lopen.application.open_store import open_store

        store = open_store(self._context)
        try:
            return store.load(self._id)
        finally:
            store.database.close()

    def _leave(self) -> str:
        self.left = True
        return ""
