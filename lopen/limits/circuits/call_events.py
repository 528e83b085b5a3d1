"""The events of a circuit in one transaction of the store: a call begins, a call ends, a circuit trips."""

from __future__ import annotations

from lopen.core.quick_stdlib import Value
from lopen.guardrails.call_history import CallEnd, CallHistory, WastefulHabit
from lopen.limits.circuits.agents import Agents, spent, too_dear
from lopen.limits.circuits.breaker import after_call, before_call
from lopen.limits.circuits.circuit import (
    TRIP,
    CallDecision,
    CircuitCall,
    CircuitState,
    opened,
    probe_lost,
    refusal,
    verified,
)
from lopen.limits.stores.records import Alert, Incident, from_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lopen.limits.circuits.agents import AgentLimits
    from lopen.limits.circuits.rules import RuleBook
    from lopen.limits.stores.store import Rows

    FindHabits = Callable[[CallHistory, CallHistory, CallEnd], tuple[WastefulHabit, ...]]

Answer = tuple[CallDecision, "tuple[Alert, ...]"]


class CountedEnd(Value):
    """The history after a call ended, the habits found, and a decision where the end tripped the circuit."""

    calls: CallHistory
    habits: tuple[WastefulHabit, ...] = ()
    decision: CallDecision | None = None
    alerts: tuple[Alert, ...] = ()


def no_habits(before: CallHistory, after: CallHistory, end: CallEnd) -> tuple[WastefulHabit, ...]:
    """Look for no habits: hooks apply the rules of circuits only."""
    return ()


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
    find: FindHabits = no_habits,
) -> CountedEnd:
    """Count the end of a call. `find` applies the rules for habits."""
    before = rows.circuit(circuit_id) or CircuitState(circuit_id)
    after, decision = after_call(before, end, now.timestamp(), book)
    habits = find(before.calls, after.calls, end)
    after = after.replace(calls=after.calls.found(habits))
    if passed_verify:
        after = verified(after)
    rows.put_circuit(after)
    alerts = log_trip(rows, decision, now) if decision else ()
    return CountedEnd(after.calls, habits, decision, alerts)


def trip(rows: Rows, circuit_id: str, rule: str, seen: str, now: datetime, book: RuleBook) -> Answer:
    """Open the circuit for a reason outside its windows; a person closes it. An open circuit stays open."""
    state = rows.circuit(circuit_id) or CircuitState(circuit_id)
    if state.tripped and state.needs_ack:
        return refusal(state, book), ()
    rows.put_circuit(opened(state, book[rule], seen, now.timestamp(), ack=True))
    decision = CallDecision(TRIP, circuit_id, rule, seen, None, book[rule].instead, True)
    return decision, log_trip(rows, decision, now)


def lose_probe(rows: Rows, circuit_id: str, now: datetime, book: RuleBook) -> None:
    """Count the probe of a dead process as failed."""
    before = rows.circuit(circuit_id)
    if before is not None and before.probe:
        rows.put_circuit(probe_lost(before, now.timestamp(), book))


def log_trip(rows: Rows, decision: CallDecision, now: datetime) -> tuple[Alert, ...]:
    """Store the incident of a trip, and an alert where the circuit needs a person."""
    if decision.kind != TRIP:
        return ()
    rows.add_incident(
        Incident(decision.circuit_id, decision.rule, decision.seen, now, decision.until, decision.needs_ack)
    )
    if not decision.needs_ack:
        return ()
    from lopen.limits.texts import trip_alert  # hooks are in a hurry, and trips are rare

    alert = trip_alert(decision, now)
    rows.add_alert(alert)
    return (alert,)


def add_cost(
    rows: Rows, circuit_id: str, cost_usd: float, limits: AgentLimits, now: datetime
) -> tuple[Alert, ...]:
    """Add to the cost of a session's sub-agents and external calls; the alert on the sum that reaches the warning."""
    agents, warn = spent(read_agents(rows, circuit_id), cost_usd, limits)
    put_agents(rows, circuit_id, agents)
    if not warn:
        return ()
    from lopen.core.money import dollars
    from lopen.limits.texts import new_id

    message = (
        f"sub-agents and external calls have cost {dollars(agents.cost_usd)} in this session"
        f" and stop at {dollars(limits.cost_block_usd)}"
    )
    alert = Alert(new_id(), circuit_id, "warning_threshold", message, timestamp=now)
    rows.add_alert(alert)
    return (alert,)


def trip_if_dear(
    rows: Rows, circuit_id: str, limits: AgentLimits, now: datetime, book: RuleBook
) -> Answer | None:
    """Open the circuit where sub-agents and external calls have cost all that they may; None where they may go on."""
    if not book.enabled or not too_dear(read_agents(rows, circuit_id), limits):
        return None
    from lopen.core.money import dollars

    seen = f"sub-agents and external calls have cost {dollars(limits.cost_block_usd)} or more"
    return trip(rows, circuit_id, "external_api", seen, now, book)


def read_agents(rows: Rows, circuit_id: str) -> Agents:
    """Return a session's agents; an empty record where the store has none."""
    return from_fields(Agents, rows.memo(f"agents:{circuit_id}") or {})


def put_agents(rows: Rows, circuit_id: str, agents: Agents) -> None:
    """Store a session's agents."""
    rows.put_memo(f"agents:{circuit_id}", agents.fields())
