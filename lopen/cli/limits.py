"""What the commands about limits share: the project's limits, wherever the settings keep them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from lopen.cli.context import CommandContext
from lopen.errors import WrongUsage
from lopen.limits.agents import AgentLimits, agent_limits
from lopen.limits.store import LimitsStore
from lopen.settings.schema import Settings

LISTED = {"budget": "lopen budget show", "circuit": "lopen circuit status"}


@contextmanager
def opened_limits(context: CommandContext) -> Iterator[tuple[LimitsStore, Settings]]:
    """The store, and the settings in force."""
    from lopen.cli.store import open_store
    from lopen.hooks.config import load as hook_settings
    from lopen.hooks.owed import settle
    from lopen.limits.debts import pay
    from lopen.limits.opening import open_ledger, open_limits

    settings = context.load().settings
    sessions = open_store(context)
    store = open_limits(settings.budget, sessions.database, evidence_max=settings.memory.evidence_max)
    ledger = open_ledger(settings.budget, sessions.database)
    try:
        for debt in ledger.debts():  # of a process that ended while the store was gone
            pay(store, ledger, debt, {}, resource_limits(settings), now())
        settle(store, hook_settings(str(context.root), os.environ)[0], str(context.root), now())
        yield store, settings
    finally:
        store.close()
        sessions.database.close()


def resource_limits(settings: Settings) -> AgentLimits:
    """The limits on sub-agents and external calls here."""
    return agent_limits(settings.resources.model_dump())


def no_such(kind: str, wanted: str) -> WrongUsage:
    """There is none of that name."""
    return WrongUsage(f"there is no {kind} {wanted}", hint=f"{LISTED[kind]} lists them")


def now() -> datetime:
    """The present, UTC."""
    return datetime.now(UTC)


def tell(context: CommandContext, lines: list[str]) -> None:
    """Lines for people; silent under `--json`, where each object has its own line."""
    if not context.json:
        context.say("\n".join(lines))
