"""What a person sees of a run: which view, what it leaves to the command itself, and the numbers in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from lopen.application.command_context import CommandContext, View
from lopen.application.run_options import ResumeOptions
from lopen.cli.rendering import mode_for, subscriber
from lopen.cli.rendering.frame import Snapshot
from lopen.loop.context import SessionContext


def view_for(
    context: CommandContext, options: ResumeOptions, hide: Callable[[str], str], holder: list[SessionContext]
) -> View:
    """The view that fits standard output and the options. `holder` gets the session's loop once there are any."""
    mode = mode_for(sys.stdout, json=context.json, quiet=options.quiet)
    color = not options.no_color and not os.environ.get("NO_COLOR")
    return subscriber(
        mode,
        sys.stdout,
        snapshot=lambda: _snapshot(holder),
        redact=hide,
        color=color,
        verbose=context.verbose,
    )


def _snapshot(holder: list[SessionContext]) -> Snapshot:
    if not holder:
        return Snapshot()
    loop = holder[0]
    state = next((s for s in loop.guards.meter.states() if s.budget_type == "session"), None)
    return Snapshot(
        tree=loop.record.journal.session.tree,
        tokens=state.tokens_used if state else None,
        token_limit=state.max_tokens if state else 0,
        cost_usd=state.cost_usd if state else None,
        cost_limit_usd=loop.settings.budget.max_cost_usd,
    )
