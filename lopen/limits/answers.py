"""Answers of the meter: a grant, a pass, a trip, or the budget that stops the session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from lopen.core.errors import PersonNeeded
from lopen.core.events import AlertRaised, Event, Notice
from lopen.core.money import dollars
from lopen.core.quick_stdlib import Value
from lopen.limits.budgets.budget import BudgetSpec, BudgetState, format_usage
from lopen.limits.stores.records import Alert, Reservation
from lopen.limits.texts import extend_command


class Grant(Value):
    """Leave to make one request with an answer of at most `max_tokens`.

    `sure` is false where the store was gone when it was asked for: what the request uses is then counted
    when the store is back. `events`: what a person should know of it.
    """

    max_tokens: int
    specs: tuple[BudgetSpec, ...]
    agent: str
    reservation: Reservation
    sure: bool = True
    events: tuple[Event, ...] = ()


class ToolPass(Value):
    """Leave to make one call. Hand it back to `Meter.after_tool` when the call ended.

    `ended`: the sub-agent that had to end to make room.
    """

    tool: str
    signature: str
    counted: bool = True
    ended: str = ""
    nonce: str = ""  # this call's, which no other with the same signature has


class ToolTrip(Value):
    """A call that is not made. `text` is for the model and the person.

    Either `until` says when calls may go on, which the caller waits for (clock.sleep), or `needs_ack` says
    that only `command`, a person's, lets them. `later`: nothing is wrong with the call, it only comes too soon.
    """

    rule: str
    text: str
    until: datetime | None
    needs_ack: bool
    command: str
    events: tuple[Event, ...] = ()
    later: bool = False


class BudgetReached(PersonNeeded):
    """There is no room for another request. `events` hold the alert, where this is the first time."""

    def __init__(self, budget_id: str, message: str, command: str, events: tuple[Event, ...] = ()) -> None:
        super().__init__(message, command=command)
        self.budget_id = budget_id
        self.events = events


def no_room(state: BudgetState, need: int, alerts: tuple[Alert, ...]) -> BudgetReached:
    """The budget has no room for a request of `need` tokens."""
    usage = format_usage(state.tokens_used, state.max_tokens)
    promised = f", {state.reserved:,} more reserved for requests under way" if state.reserved else ""
    message = f"budget {state.budget_id} has no room for another request: {usage} tokens used{promised}"
    return BudgetReached(state.budget_id, message, extend_command(state, need), raised(alerts))


def no_money(session: str, cost_usd: float, max_cost_usd: float, request_usd: float) -> BudgetReached:
    """The session's limit on cost has no room for a request that may cost `request_usd`."""
    message = f"this session has cost {dollars(cost_usd)} of the {dollars(max_cost_usd)} it may"
    if cost_usd < max_cost_usd:
        message += f", and another request may cost {dollars(request_usd)}"
    cents = math.ceil(round(100 * (cost_usd + max(max_cost_usd, request_usd)), 4))  # as much again
    return BudgetReached(f"session:{session}", message, f"lopen resume {session} --max-cost {cents / 100:g}")


def raised(alerts: Sequence[Alert]) -> tuple[Event, ...]:
    """The events for alerts."""
    return tuple(AlertRaised(a.alert_type, a.budget_id, a.message, round(a.utilization, 4)) for a in alerts)


def cut_off(dead: Sequence[Reservation]) -> tuple[Event, ...]:
    """Tell what requests count as that were cut off: their input, and their answers as far as they came."""
    if not dead:
        return ()
    one = "a request that was cut off counts"
    what = one if len(dead) == 1 else f"{len(dead)} requests that were cut off count"
    tokens = sum(used_at_most(left) for left in dead)
    return (Notice("info", f"{what} as ≤ {tokens:,} tokens: the input, and the answer as far as it came"),)


def used_at_most(left: Reservation) -> int:
    """Return the tokens that a request has used which was cut off."""
    return left.tokens if left.estimate is None else left.estimate
