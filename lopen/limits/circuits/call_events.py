"""What happens to a circuit inside a store's transaction: a call announced, a call ended, with log and alert."""

from __future__ import annotations

from datetime import datetime

from lopen.limits.circuits.agents import Agents
from lopen.limits.circuits.breaker import after_call, before_call
from lopen.limits.circuits.circuit import (
    ALLOW,
    TRIP,
    CallDecision,
    CallOutcome,
    CircuitCall,
    CircuitState,
    held,
    lost,
    opened,
    verified,
)
from lopen.limits.stores.records import Incident, from_fields
from lopen.limits.texts import trip_alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lopen.limits.circuits.rules import RuleBook
    from lopen.limits.stores.records import Alert
    from lopen.limits.stores.store import Rows

Answer = tuple[CallDecision, "tuple[Alert, ...]"]


def announce_call(rows: Rows, circuit_id: str, call: CircuitCall, now: datetime, book: RuleBook) -> Answer:
    """Whether the call may be made; an allowed one is counted. Circuits that are off keep nothing else."""
    if not book.enabled:
        return CallDecision(ALLOW, circuit_id), ()
    before = rows.circuit(circuit_id) or CircuitState(circuit_id)
    after, decision = before_call(before, call, now.timestamp(), book)
    if after != before:
        rows.put_circuit(after)
    return decision, log_trip(rows, decision, now)


def end_call(
    rows: Rows,
    circuit_id: str,
    outcome: CallOutcome,
    now: datetime,
    book: RuleBook,
    *,
    passed_verify: bool = False,
) -> tuple[CallDecision | None, tuple[Alert, ...]]:
    """What the end of a call means for its circuit."""
    if not book.enabled:
        return None, ()
    state, decision = after_call(
        rows.circuit(circuit_id) or CircuitState(circuit_id), outcome, now.timestamp(), book
    )
    rows.put_circuit(verified(state) if passed_verify else state)
    return decision, log_trip(rows, decision, now) if decision else ()


def trip(rows: Rows, circuit_id: str, rule: str, seen: str, now: datetime, book: RuleBook) -> Answer:
    """Open the circuit for something its own windows do not see; a person closes it. One that is open stays so."""
    state = rows.circuit(circuit_id) or CircuitState(circuit_id)
    if state.tripped and state.needs_ack:
        return held(state, book), ()
    rows.put_circuit(opened(state, book[rule], seen, now.timestamp(), ack=True))
    decision = CallDecision(TRIP, circuit_id, rule, seen, None, book[rule].instead, True)
    return decision, log_trip(rows, decision, now)


def lose_probe(rows: Rows, circuit_id: str, now: datetime, book: RuleBook) -> None:
    """The process that held the probe died: the probe failed."""
    before = rows.circuit(circuit_id)
    if before is not None and before.probe:
        rows.put_circuit(lost(before, now.timestamp(), book))


def log_trip(rows: Rows, decision: CallDecision, now: datetime) -> tuple[Alert, ...]:
    """Keep the incident; an alert where only a person can go on."""
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


def agents_key(circuit_id: str) -> str:
    """Where a session's agents are kept."""
    return f"agents:{circuit_id}"


def read_agents(rows: Rows, circuit_id: str) -> Agents:
    """A session's agents; none where nothing is kept."""
    return from_fields(Agents, rows.memo(agents_key(circuit_id)) or {})


def put_agents(rows: Rows, circuit_id: str, agents: Agents) -> None:
    """Keep a session's agents."""
    rows.put_memo(agents_key(circuit_id), agents.fields())
