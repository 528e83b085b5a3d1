"""What a Redis that is gone is owed by hooks: tokens that an event carries and no transcript tells again.

It is kept in the project's `state.db`; the next prompt, session or command that reaches the store counts it.
"""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from lopen.hooks.config import AGENT, session_spec, table
from lopen.hooks.event import HookEvent
from lopen.limits.agents import agent_limits
from lopen.limits.budget import Charge
from lopen.limits.debts import DatabaseLedger, Debt, pay
from lopen.limits.records import Reservation
from lopen.limits.store import LimitsStore
from lopen.limits.texts import new_id
from lopen.storage.database import Database

BUSY_S = 0.5


def owe(event: HookEvent, settings: dict[str, Any], root: str, now: datetime) -> None:
    """Keep the event's usage; LopenError where that cannot be done either."""
    if event.usage is None or not os.path.isdir(os.path.join(root, ".lopen")):
        return
    spec = session_spec(settings, event.session)
    tokens = event.usage.billed(settings["budget.cache_read_weight"])
    charge = Charge(tokens, event.usage, 1, None, AGENT, event.model)
    never_made = Reservation(new_id(), event.session, "", (spec.budget_id,), 0, AGENT, now)
    with closing(Database(_state(root), timeout_s=BUSY_S)) as database:
        DatabaseLedger(database).keep(Debt((spec,), charge, never_made, sure=False))


def settle_debts(store: LimitsStore, settings: dict[str, Any], root: str, now: datetime) -> None:
    """Count what was kept."""
    if not _state(root).exists():
        return
    limits = agent_limits(table(settings, "resources"))
    with closing(Database(_state(root), timeout_s=BUSY_S)) as database:
        ledger = DatabaseLedger(database)
        for debt in ledger.debts():
            pay(store, ledger, debt, {}, limits, now)


def _state(root: str) -> Path:
    return Path(root) / ".lopen" / "state.db"
