"""What the meter answers its callers: a grant, a pass, a trip, or the budget that stops the session."""

from __future__ import annotations

from datetime import datetime

from lopen.errors import PersonNeeded
from lopen.events import AlertRaised, Event
from lopen.limits.budget import BudgetSpec, BudgetState, format_usage
from lopen.limits.records import Alert, Reservation
from lopen.limits.texts import extend_command
from lopen.limits.value import Value


class Grant(Value):
    """Leave to make one request with an answer of at most `max_tokens`.

    `sure` is false where the store was gone when it was asked for: what the request uses is then counted
    when the store is back.
    """

    max_tokens: int
    specs: tuple[BudgetSpec, ...]
    agent: str
    reservation: Reservation
    sure: bool = True


class ToolPass(Value):
    """Leave to make one call. Hand it back to `Meter.after_tool` when the call ended.

    `ended`: the sub-agent that had to end to make room.
    """

    tool: str
    signature: str
    counted: bool = True
    ended: str = ""


class ToolTrip(Value):
    """A call that is not made. `text` is for the model and the person.

    Either `until` says when calls may go on, which the caller waits for (clock.sleep), or `needs_ack` says
    that only `command`, a person's, lets them.
    """

    rule: str
    text: str
    until: datetime | None
    needs_ack: bool
    command: str
    events: tuple[Event, ...] = ()


class ModuleCheck(Value):
    """What the budget guardrail looks at: the module's budget, and what was crossed and confirmed."""

    budget_id: str
    token_utilization: float
    request_utilization: float
    status: str
    crossed: tuple[str, ...]  # warning, confirmation, pause
    confirmed: bool
    usage: str


class BudgetReached(PersonNeeded):
    """There is no room for another request. `events` hold the alert, where this is the first time."""

    def __init__(
        self, state: BudgetState, *, message: str = "", command: str = "", events: tuple[Event, ...] = ()
    ) -> None:
        usage = format_usage(state.tokens_used, state.max_tokens)
        super().__init__(
            message or f"budget {state.budget_id} has no room for another request: {usage} tokens used",
            command=command or extend_command(state),
        )
        self.budget_id = state.budget_id
        self.state = state
        self.events = events


def raised(alerts: tuple[Alert, ...]) -> tuple[Event, ...]:
    """The events for alerts."""
    return tuple(AlertRaised(a.alert_type, a.budget_id, a.message, round(a.utilization, 4)) for a in alerts)
