"""Budgets, circuits and alerts as lines for people and as plain objects for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lopen.core.money import cost_text, dollars
from lopen.limits.agents import AgentLimits, Agents
from lopen.limits.budget import NEAR_LIMIT, BudgetState, format_usage, percent
from lopen.limits.circuits import RULES, CircuitState, RuleBook
from lopen.limits.records import Alert, Incident, field_values

BAR = 10
HALF = 0.5  # of a budget: from here on results tell the model the rest of it
WRAP_UP = "Verify and complete what you have, or split the task: at 0 the run pauses for a person."


def instant(value: datetime) -> str:
    """ISO 8601, UTC, to the second."""
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def budget_object(state: BudgetState) -> dict[str, Any]:
    """One budget as a plain object."""
    return {
        "budget_id": state.budget_id,
        "budget_type": state.budget_type,
        "max_tokens": state.max_tokens,
        "tokens_used": state.tokens_used,
        "utilization": round(state.utilization, 4),
        "remaining": state.remaining,
        "status": state.status,
        "alert_threshold": state.spec.alert_threshold,
        "agent": state.spec.agent,
        "task_description": state.spec.task_description,
        "started_at": instant(state.started_at),
        "last_updated": instant(state.last_updated),
        "reserved": state.reserved,
        "requests_used": state.requests_used,
        "max_requests": state.spec.max_requests,
        "cost_usd": round(state.cost_usd, 6),
        "unpriced_tokens": state.unpriced_tokens,
        "estimated_tokens": state.estimated_tokens,
        "extended": state.extended,
    }


def circuit_object(state: CircuitState, book: RuleBook) -> dict[str, Any]:
    """One circuit as a plain object, beside the limits of the rules."""
    return {
        "circuit_id": state.circuit_id,
        "state": state.state,
        "iteration_count": state.calls.iteration_count,
        "max_iterations": book["max_iterations"].threshold,
        "duplicate_call_count": state.identical_calls(),
        "duplicate_threshold": book["duplicate_call"].threshold,
        "trip_reason": state.trip_reason,
        "tripped_at": _epoch(state.tripped_at),
        "last_updated": _epoch(state.last_updated),
        "rule": state.rule,
        "cooldown_until": _epoch(state.cooldown_until or None) if state.tripped else None,
        "needs_ack": state.needs_ack,
        "trips": state.trips,
    }


def alert_object(alert: Alert) -> dict[str, Any]:
    """One alert as a plain object."""
    return field_values(alert) | {"timestamp": instant(alert.timestamp)}


def budget_lines(states: Sequence[BudgetState]) -> list[str]:
    """One line a budget."""
    width = max((len(s.budget_id) for s in states), default=0)
    return [_budget_line(state, width) for state in states] or ["No budgets yet."]


def _budget_line(state: BudgetState, width: int) -> str:
    parts = [state.budget_id.ljust(width)]
    if state.max_tokens > 0:
        filled = min(BAR, int(state.token_utilization * BAR))
        parts.append(f"[{'=' * filled}{'-' * (BAR - filled)}]")
    estimated = "≤ " if state.estimated_tokens else ""
    parts.append(f"{estimated}{format_usage(state.tokens_used, state.max_tokens)} tokens")
    if state.reserved:
        parts.append(f"{state.reserved:,} reserved")
    if state.spec.max_requests > 0:
        parts.append(f"{format_usage(state.requests_used, state.spec.max_requests)} requests")
    parts += [state.status, cost_text(state.cost_usd, state.unpriced_tokens)]
    if state.spec.task_description:
        parts.append(state.spec.task_description)
    return "  ".join(parts)


def circuit_lines(state: CircuitState, book: RuleBook, now: datetime) -> list[str]:
    """Return the paused budgets and circuits with the ends of their pauses, and the others in one line."""
    count = f"{state.calls.iteration_count}/{book['max_iterations'].threshold} calls"
    if state.state == "closed":
        return [f"{state.circuit_id}: all limits OK ({count})"]
    left = max(0.0, state.cooldown_until - now.timestamp())
    if state.state == "half_open":
        how = f"TRYING AGAIN ({'one call is being tried' if state.probe else 'one call will be tried'})"
    elif state.needs_ack:
        how = f"PAUSED (waits for a person: lopen circuit ack {state.circuit_id})"
    else:
        how = f"PAUSED (cooldown: {left:.0f}s remaining)"
    others = len(RULES) - 1
    return [
        f"{state.circuit_id}: {state.rule} {how}",
        f"  last trip: {_epoch(state.tripped_at)}: {state.trip_reason}",
        f"  the other {others} limits: OK ({count})",
    ]


def in_words(state: CircuitState) -> str:
    """Return the state of a circuit for people and models: OK, or the rule that pauses calls."""
    if state.state == "closed":
        return "circuits OK"
    return f"{state.rule} {'paused' if state.tripped else 'trying again'}"


def resource_object(
    agents: Agents, circuit: CircuitState, limits: AgentLimits, now: datetime
) -> dict[str, Any]:
    """Sub-agents, external calls and their cost, each beside its limit."""
    return {
        "agents_running": len(agents.running),
        "max_concurrent_agents": limits.max_concurrent_agents,
        "agents_spawned": agents.spawned,
        "max_agents_per_session": limits.max_agents_per_session,
        "external_last_minute": circuit.recent_external(now.timestamp()),
        "external_total": circuit.external_total,
        "api_session_max": limits.api_session_max,
        "external_cost_usd": round(agents.cost_usd, 6),
        "cost_warn_usd": limits.cost_warn_usd,
        "cost_block_usd": limits.cost_block_usd,
    }


def resource_lines(found: Mapping[str, Any], rate: int) -> list[str]:
    """The values of `resource_object` in lines. `rate`: external calls a minute."""
    cost = [dollars(found["external_cost_usd"])]
    cost += [
        f"{dollars(found[f'cost_{what}_usd'])} {what}"
        for what in ("warn", "block")
        if found[f"cost_{what}_usd"]
    ]
    running, most = found["agents_running"], found["max_concurrent_agents"]
    recent = found["external_last_minute"]
    return [
        f"  agents: {running}/{most} at once ({percent(running / most)} capacity),"
        f" {found['agents_spawned']}/{found['max_agents_per_session']} this session",
        f"  external calls: {recent}/{rate} this minute ({percent(recent / rate)} rate),"
        f" {found['external_total']}/{found['api_session_max']} this session",
        f"  cost of sub-agents and external calls: {' / '.join(cost)}",
    ]


def incident_object(incident: Incident) -> dict[str, Any]:
    """One entry of the incident log."""
    return field_values(incident) | {"at": instant(incident.at), "until": _epoch(incident.until)}


def incident_log(incidents: Sequence[Incident]) -> list[str]:
    """Return one line an entry: the trip, grant, acknowledgement or reset, and the reason."""
    return [
        f"{instant(i.at)}  {i.circuit_id}  {i.rule}: {i.seen}"
        + (f" (until {_epoch(i.until)})" if i.until else "")
        + (" (a person had to let it go on)" if i.needs_ack else "")
        for i in incidents
    ]


def incident_counts(incidents: Sequence[Incident], now: datetime) -> dict[str, int]:
    """Count each kind of incident of the last 24 hours."""
    return dict(sorted(Counter(i.rule for i in incidents if now - i.at < timedelta(hours=24)).items()))


def incident_line(counts: Mapping[str, int]) -> str:
    """The same in a line."""
    said = ", ".join(f"{rule} x{count}" for rule, count in counts.items()) or "none"
    return f"Incidents in the last 24 h (lopen circuit incidents): {said}"


def alert_lines(alerts: Sequence[Alert]) -> list[str]:
    """Return one line an alert, with a mark at new ones."""
    return [
        f"{'  ' if a.acknowledged else '! '}{a.alert_id}  {instant(a.timestamp)}  {a.alert_type}: {a.message}"
        for a in alerts
    ]


def left_line(states: Sequence[BudgetState]) -> str:
    """Return the rest of the budgets of which half is used, and the advice where one is nearly used up; else ""."""
    told = [s for s in states if s.utilization >= HALF]
    if not told:
        return ""
    parts = [
        f"{s.budget_type} {max(0, s.spec.max_requests - s.requests_used):,} of {s.spec.max_requests:,} requests"
        if s.request_utilization > s.token_utilization
        else f"{s.budget_type} {s.remaining or 0:,} of {s.max_tokens:,} tokens"
        for s in told
    ]
    near = any(s.utilization >= s.spec.alert_threshold for s in told)
    return f"Left of the budget: {', '.join(parts)}.{f' {WRAP_UP}' if near else ''}"


def snapshot_line(states: Sequence[BudgetState], circuit: CircuitState, book: RuleBook, *, near: bool) -> str:
    """Return budgets and circuit in one line for the model, with guidance where one is near its limit."""
    parts = [f"{s.budget_type} {format_usage(s.tokens_used, s.max_tokens)}" for s in states]
    budget = ", ".join(parts) or "not counted at the moment"
    most = book["max_iterations"].threshold
    line = f"Budget: {budget}; {in_words(circuit)} ({circuit.calls.iteration_count}/{most} calls since the last passing verify)."
    return f"{line} {NEAR_LIMIT}" if near else line


def near_limit(states: Sequence[BudgetState], circuit: CircuitState) -> bool:
    """Return True if a budget has passed its warning, or the circuit is not closed."""
    return circuit.state != "closed" or any(s.utilization >= s.spec.alert_threshold for s in states)


def _epoch(seconds: float | None) -> str | None:
    return None if seconds is None else instant(datetime.fromtimestamp(seconds, UTC))
