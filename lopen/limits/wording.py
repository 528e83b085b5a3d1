"""Texts of limits for people and models: what was seen, until when, what to do instead, how to go on."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from lopen.core.events import AlertRaised, Event
from lopen.limits.budget import (
    ALERT_TYPES,
    CONFIRMATION,
    PAUSE,
    SMALLEST_ANSWER,
    WARNING,
    BudgetState,
    extension,
    percent,
)
from lopen.limits.circuit import LATER, CallDecision
from lopen.limits.records import Alert

NEAR_LIMIT = (
    "At 80% wrap up the current work; at 100% execution pauses until a person extends the budget. "
    "Avoid identical tool calls: if something does not work twice, try another way or say what is missing."
)


def new_id() -> str:
    """16 hex digits that nothing else has."""
    return os.urandom(8).hex()


def used_of(state: BudgetState) -> str:
    """`82,000 / 100,000`, in tokens, or in requests where those are the tighter limit."""
    if state.request_utilization > state.token_utilization:
        return f"{state.requests_used:,} / {state.spec.max_requests:,} requests"
    return f"{state.tokens_used:,} / {state.max_tokens:,}"


def extend_command(state: BudgetState, need: int = SMALLEST_ANSWER, *, short: bool = False) -> str:
    """The person's command that lets work go on after this budget paused it.

    `short`: without the budget's id, which the command finds where one budget alone is used up.
    """
    tokens, budget_id = extension(state, need), shlex.quote(state.budget_id)
    if not tokens:
        return f"lopen budget reset {budget_id}"
    return f"lopen budget extend{'' if short else f' {budget_id}'} --tokens {tokens}"


def standing_text(state: BudgetState, crossing: str) -> str:
    """What a budget answers to any further request, by the threshold that matters."""
    share = f"{percent(state.utilization)} used ({used_of(state)})"
    if crossing == WARNING:
        return f"budget {state.budget_id}: {share}"
    if crossing == CONFIRMATION:
        return f"budget {state.budget_id} needs a person's confirmation to go on: {share}"
    promised = f", {state.reserved:,} more reserved for requests under way" if state.reserved else ""
    return f"budget {state.budget_id} has no room for another request: {share}{promised}"


def budget_alert(state: BudgetState, crossing: str, now: datetime, need: int = SMALLEST_ANSWER) -> Alert:
    """The alert for a threshold that was crossed just now; `need`: tokens of the request that found no room."""
    share = f"{percent(state.utilization)} ({used_of(state)})"
    if crossing == PAUSE:
        verb = "is used up" if state.spec.enforcement == "hard" else "is past its limit, which only warns"
        if state.utilization < state.spec.pause_threshold:  # refused before it was reached
            verb = "has no room for another request"
        message = f"budget {state.budget_id} {verb}: {share}; to go on: {extend_command(state, need)}"
    elif crossing == CONFIRMATION:
        message = f"budget {state.budget_id} wants a person's confirmation: {share}"
    else:
        message = f"budget {state.budget_id} is at {share}"
    return Alert(new_id(), state.budget_id, ALERT_TYPES[crossing], message, state.utilization, now)


def trip_text(decision: CallDecision, now: datetime, *, short: bool = False) -> str:
    """Why a call is held back: reason and workaround, then until when or the person's command.

    `short`: in two lines, and without the circuit's id, which the command finds where one circuit alone waits.
    """
    later = decision.kind == LATER
    reason = f"{'Resource limit reached' if later else 'Circuit breaker tripped'}: {decision.seen}."
    if decision.instead:
        reason += f" Instead: {decision.instead}."
    ways = []
    if decision.until is not None:
        wait = max(1, -int((now.timestamp() - decision.until) // 1))  # rounded up, as is the time of day
        until = datetime.fromtimestamp(-(-decision.until // 1), UTC).strftime("%H:%M:%S UTC")
        ways.append(f"Cooldown: {wait}s, until {until}{'' if later else '; then one call is let through'}.")
    if decision.rule == "agent_spawn":
        ways.append("SUDO PARALLEL in the person's prompt lifts the limits on sub-agents.")
    if decision.needs_ack:
        command = "lopen circuit ack" if short else f"lopen circuit ack {decision.circuit_id}"
        ways.append(f"A person lets it go on with: {command}")
    return ("\n" if short else " ").join([reason, " ".join(ways)] if ways else [reason])


def trip_alert(decision: CallDecision, now: datetime) -> Alert:
    """The alert for a circuit that only a person can close."""
    return Alert(new_id(), decision.circuit_id, "circuit_tripped", trip_text(decision, now), 0.0, now)


def raised(alerts: Sequence[Alert]) -> tuple[Event, ...]:
    """The events for alerts."""
    return tuple(AlertRaised(a.alert_type, a.budget_id, a.message, round(a.utilization, 4)) for a in alerts)
