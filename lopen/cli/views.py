"""What a person sees of a run: which view, what it leaves to the command itself, and the numbers in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace

from lopen.cli.context import CommandContext
from lopen.cli.options import ResumeOptions
from lopen.cli.rendering import View, mode_for, subscriber
from lopen.cli.rendering.board import Snapshot
from lopen.events import Recorded, SessionFailed, SessionPaused, Subscriber
from lopen.ports import Ports


def view_for(
    context: CommandContext, options: ResumeOptions, hide: Callable[[str], str], holder: list[Ports]
) -> View:
    """The view that fits standard output and the options. `holder` gets the session's ports once there are any."""
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


def shown(context: CommandContext, view: View) -> Subscriber:
    """The view, but for what the command itself is about to tell a person: a failure, and how to begin again."""

    def show(record: Recorded) -> None:
        event = record.event
        if isinstance(event, SessionPaused) and not context.resumable:
            record = replace(record, event=replace(event, command=""), body="")
        if context.json or not isinstance(event, SessionFailed):
            view(record)

    return show


def _snapshot(holder: list[Ports]) -> Snapshot:
    if not holder:
        return Snapshot()
    ports = holder[0]
    state = next((s for s in ports.meter.states() if s.budget_type == "session"), None)
    return Snapshot(
        tree=ports.journal.session.tree,
        tokens=state.tokens_used if state else None,
        token_limit=state.max_tokens if state else 0,
        cost_usd=state.cost_usd if state else None,
        cost_limit_usd=ports.settings.budget.max_cost_usd,
    )
