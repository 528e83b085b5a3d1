"""A Claude Code session as one event finds it: its memo, budgets, calls and sub-agents, inside one transaction."""

from __future__ import annotations

from datetime import datetime

from lopen.claude_hooks import pending_usage
from lopen.claude_hooks.config import table
from lopen.claude_hooks.event import HookEvent
from lopen.claude_hooks.running_calls import Pending, SubAgents
from lopen.claude_hooks.spending import Spending
from lopen.limits.circuits.agents import agent_limits
from lopen.limits.circuits.circuit import CircuitState, cooled
from lopen.limits.circuits.rules import rule_book

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lopen.limits.stores.store import Rows


class HookSession:
    """What the guards of events and of calls share."""

    def __init__(
        self,
        rows: Rows,
        event: HookEvent,
        settings: dict[str, Any],
        now: datetime,
        event_id: str,
        *,
        verifiable: bool,
    ) -> None:
        """`event_id`: the event's own, by which its tokens are counted once. `verifiable`: there are verify commands."""
        self.rows = rows
        self.event = event
        self.settings = settings
        self.now = now
        self.event_id = event_id
        self.id = f"session:{event.session}"
        self.memo: dict[str, Any] = rows.memo(f"hooks:{event.session}") or {}
        self.limits = agent_limits(table(settings, "resources"))
        self.spending = Spending(rows, event, settings, self.memo, self.limits, now)
        self.pending = Pending(self.memo)
        self.agents = SubAgents(rows, self.id, self.memo)
        self.book = rule_book(
            table(settings, "circuit"),
            api_session_max=self.limits.api_session_max,
            history=settings["memory.tool_history_max"],
            verifiable=verifiable,
        )

    def circuit(self) -> CircuitState:
        """The circuit as it stands at this moment."""
        new = CircuitState(self.id, max_iterations=self.book["max_iterations"].threshold)
        return cooled(self.rows.circuit(self.id) or new, self.now.timestamp())

    def count_usage(self) -> None:
        """Charge the tokens that the event itself carries; a transcript tells them otherwise, and all of them."""
        usage = self.event.usage
        if usage is None or self.event.transcript:
            return
        counts = usage.fields().values()
        self.spending.charge(self.event.model, usage, sum(counts) - usage.output_tokens)
        pending_usage.note(self.memo, self.event_id)
