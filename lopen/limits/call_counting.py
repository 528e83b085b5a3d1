"""Counting calls in a store: the rules of circuits applied within one transaction, with the incident and alert of a trip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from lopen.guardrails.call_history import CallEnd, CallHistory, WastefulHabit
from lopen.guardrails.habits import HabitLimits, find_habits
from lopen.limits.agents import AgentLimits, is_spent, read_agents
from lopen.limits.circuits import (
    TRIP,
    CallDecision,
    CircuitCall,
    CircuitState,
    RuleBook,
    after_call,
    before_call,
    opened,
    refusal,
    trip_alert,
    verified,
    without_probe,
)
from lopen.limits.records import Alert, Incident
from lopen.limits.store import Rows

Answer = tuple[CallDecision, tuple[Alert, ...]]


@dataclass(frozen=True, slots=True)
class CountedEnd:
    """The history after a call ended, the habits found, and a decision where the end tripped the circuit."""

    calls: CallHistory
    habits: tuple[WastefulHabit, ...] = ()
    decision: CallDecision | None = None
    alerts: tuple[Alert, ...] = ()


def announce_call(rows: Rows, circuit_id: str, call: CircuitCall, now: datetime, book: RuleBook) -> Answer:
    """Count a call that is about to be made, and decide about it."""
    before = rows.circuit(circuit_id) or CircuitState(circuit_id)
    after, decision = before_call(before, call, now.timestamp(), book)
    if after != before:
        rows.put_circuit(after)
    return decision, log_trip(rows, decision, now)


def end_call(
    rows: Rows,
    circuit_id: str,
    end: CallEnd,
    now: datetime,
    book: RuleBook,
    *,
    passed_verify: bool = False,
    habits: HabitLimits | None = None,
) -> CountedEnd:
    """Count the end of a call, and look for habits where limits are given: hooks apply the rules of circuits only."""
    before = rows.circuit(circuit_id) or CircuitState(circuit_id)
    after, decision = after_call(before, end, now.timestamp(), book)
    found = find_habits(after.calls, end, habits) if habits else ()
    after = replace(after, calls=after.calls.found(found))
    if passed_verify:
        after = verified(after)
    rows.put_circuit(after)
    alerts = log_trip(rows, decision, now) if decision else ()
    return CountedEnd(after.calls, found, decision, alerts)


def trip(rows: Rows, circuit_id: str, rule: str, seen: str, now: datetime, book: RuleBook) -> Answer:
    """Open the circuit for a reason outside its windows; a person closes it. An open circuit stays open."""
    state = rows.circuit(circuit_id) or CircuitState(circuit_id)
    if state.tripped and state.needs_ack:
        return refusal(state, book), ()
    rows.put_circuit(opened(state, book[rule], seen, now.timestamp(), ack=True))
    decision = CallDecision(TRIP, circuit_id, rule, seen, None, book[rule].instead, True)
    return decision, log_trip(rows, decision, now)


def trip_on_cost(
    rows: Rows, circuit_id: str, limits: AgentLimits, now: datetime, book: RuleBook
) -> Answer | None:
    """Open the circuit where sub-agents and external calls have cost all that they may; None where they may go on."""
    if not book.enabled or not is_spent(read_agents(rows, circuit_id), limits):
        return None
    seen = f"sub-agents and external calls have cost {limits.block_text} or more"
    return trip(rows, circuit_id, "external_api", seen, now, book)


def drop_probe(rows: Rows, circuit_id: str) -> None:
    """Let the next call be the probe: the process of the one that ran is gone."""
    before = rows.circuit(circuit_id)
    if before is not None and before.probe is not None:
        rows.put_circuit(without_probe(before))


def log_trip(rows: Rows, decision: CallDecision, now: datetime) -> tuple[Alert, ...]:
    """Store the incident of a trip, and an alert where the circuit needs a person."""
    if decision.kind != TRIP:
        return ()
    rows.add_incident(
        Incident(decision.circuit_id, decision.rule, decision.seen, now, decision.until, decision.needs_ack)
    )
    if not decision.needs_ack:
        return ()
    alert = trip_alert(decision, now)
    rows.add_alert(alert)
    return (alert,)
