"""The rules of the circuit breaker: whether a call may be made, and what its end means for the circuit.

The call that trips the circuit is not made. Two pure functions decide (`before_call`, `after_call`); the functions
over `Rows` apply them within one transaction of the store, with the incident and the alert of a trip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from lopen.guardrails.call_history import CallEnd, CallHistory, WastefulHabit
from lopen.limits.agents import AgentLimits, is_spent, read_agents
from lopen.limits.circuit import (
    ALLOW,
    LATER,
    TRIP,
    AgentRow,
    CallDecision,
    CircuitCall,
    CircuitState,
    closed,
    cooled,
    opened,
    probe_lost,
    refusal,
    verified,
)
from lopen.limits.records import Alert, Incident
from lopen.limits.rules import TOOLS, CircuitRule, RuleBook
from lopen.limits.store import Rows
from lopen.limits.wording import trip_alert

# Tools that record lopen's own state: waiting cannot mend an input that they refuse
RECORDS = frozenset(
    {"record_dependencies", "record_components", "select_component", "record_tasks"}
    | {"update_task_status", "update_subtask", "add_task", "split_task"}
)
PROBE_LOST_S = 900.0  # longer than any call may take

FindHabits = Callable[[CallHistory, CallHistory, CallEnd], tuple[WastefulHabit, ...]]
Answer = tuple[CallDecision, tuple[Alert, ...]]


def before_call(
    state: CircuitState, call: CircuitCall, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision]:
    """Decide whether `call` may be made; return the new state and the decision."""
    if not book.enabled:
        return _in_history(state, call, book), CallDecision(ALLOW, state.circuit_id)
    if state.probe is not None and now - state.probe[1] > PROBE_LOST_S:
        state = probe_lost(state, now, book)
    state = cooled(state, now)
    held = state.holds(call)
    if held and state.tripped:
        return state, refusal(state, book)
    if held and state.probe is not None and not call.inner:
        return state, refusal(replace(state, cooldown_until=now + 1.0), book, "a probe is under way")
    counted = _counted(state, call, now, book)
    external = book["external_api"]
    if call.kind == "oracle" and external.trips(len(counted.windows["external_api"])):
        free_at = counted.windows["external_api"][0] + external.window
        full = "the window for external calls is full"
        return state, CallDecision(LATER, state.circuit_id, external.name, full, free_at)
    refused = replace(counted, windows=_uncounted(counted, state), external_total=state.external_total)
    probes = held and state.probe is None
    for rule in book.rules.values():
        count = _count(rule, counted, call)
        if rule.trips(count) and not (probes and rule.name == state.rule):
            return _trip(refused, rule, _seen(rule, call, count, book), now, book)
    if external.enabled and counted.external_total > book.api_session_max:
        seen = f"{book.api_session_max} external calls were made in this session, which is all it may"
        return _trip(refused, external, seen, now, book, ack=True)
    if probes:
        counted = replace(counted, probe=(call.mark, now))
    return counted, CallDecision(ALLOW, state.circuit_id)


def _uncounted(counted: CircuitState, before: CircuitState) -> dict[str, tuple[float, ...]]:
    """The windows without the external call or start of a sub-agent that is refused: it does not count in them."""
    return {**counted.windows, **{n: before.windows.get(n, ()) for n in ("external_api", "agent_spawn")}}


def _counted(state: CircuitState, call: CircuitCall, now: float, book: RuleBook) -> CircuitState:
    """Count `call` in each window that it belongs to. An oracle's call is lopen's own: it is in no turn of the model."""
    row = state.row(call.agent)
    if call.kind != "oracle":
        row = _in_turn(row, call)
    windows = dict(state.windows)
    for rule in book.rules.values():
        if call.kind in rule.kinds and (rule.own or rule.unit == "seconds"):
            at = now if rule.unit == "seconds" else float(row.turn)
            windows[rule.name] = rule.counted(windows.get(rule.name, ()), at)
    if call.kind in TOOLS:
        same = row.same_calls + 1 if call.signature == row.last_call else 1
        calls = {**row.calls, call.tool: row.calls.get(call.tool, 0) + 1}
        row = replace(row, calls=calls, last_call=call.signature, same_calls=same)
    total = state.external_total + (call.kind in ("external", "oracle"))
    counted = replace(state, windows=windows, external_total=total, last_updated=now)
    return _in_history(counted.with_row(call.agent, row), call, book)


def _in_turn(row: AgentRow, call: CircuitCall) -> AgentRow:
    if call.turn == row.label:
        return row
    return replace(row, turn=row.turn + _turns(row.label, call.turn), label=call.turn, calls={})


def _turns(before: str, after: str) -> int:
    """Count the turns between two labels: the difference of two numbers under one head, else one."""
    head, _, number = after.rpartition("/")
    earlier_head, _, earlier = before.rpartition("/")
    if head != earlier_head or not (number.isdecimal() and earlier.isdecimal()):
        return 1
    return max(1, int(number) - int(earlier))


def _in_history(state: CircuitState, call: CircuitCall, book: RuleBook) -> CircuitState:
    calls = state.calls
    if call.kind != "oracle" and not call.inner:
        calls = calls.in_task(call.task)
    if call.kind in TOOLS:
        calls = calls.announced(call.signature, of_task=call.of_task, kept=book.history)
    return replace(state, calls=calls)


def _count(rule: CircuitRule, state: CircuitState, call: CircuitCall) -> int:
    """Return the calls that the rule counts up to this one; 0 where the rule is not about it."""
    row = state.row(call.agent)
    if call.kind not in rule.kinds or call.kind == "oracle":  # an oracle's call waits for its turn
        return 0
    match rule.name:
        case "max_iterations":
            return state.calls.iteration_count if call.of_task and not call.verifies else 0
        case "duplicate_call":
            return row.same_calls
        case "sequential_tool":
            return row.calls.get(call.tool, 0)
        case _:  # failures are counted when a call ends
            return len(state.windows.get(rule.name, ()))


def _seen(rule: CircuitRule, call: CircuitCall, count: int, book: RuleBook) -> str:
    since = "the last passing verify command" if book.verifiable else "the person's last prompt"
    return rule.seen.format(tool=call.tool, count=count, window=rule.window, since=since)


def after_call(
    state: CircuitState, end: CallEnd, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision | None]:
    """Count the end of a call; return the new state, and a decision where the end tripped the circuit."""
    state = replace(state, calls=state.calls.ended(end, book.history))
    row = state.row(end.agent)
    if end.progressed and row.last_call == end.signature:
        state = state.with_row(end.agent, replace(row, same_calls=0))
    if not book.enabled:
        return state, None
    failed = is_failure(state, end)
    state = replace(state, last_updated=now)
    if state.state == "half_open" and state.probe is not None and state.probe[0] == end.mark:
        if not failed:
            return closed(state), None
        return _trip(state, book[state.rule], f"the probe after the cooldown failed ({end.tool})", now, book)
    if not failed or state.holds_all:
        return state, None
    return _failed(state, end, now, book)


def is_failure(state: CircuitState, end: CallEnd) -> bool:
    """Tell whether a counted end is a failure: not `ok`, or the command failed again.

    Failures count over one state of the work tree only.
    """
    again = state.calls.failures_in_row(end.signature) > 1
    return not end.ok or (bool(end.exit_code) and bool(end.tree) and again)


def _failed(
    state: CircuitState, end: CallEnd, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision | None]:
    """Count a failure of a tool within its turns."""
    rule, row, tree = book["tool_failure"], state.row(end.agent), state.calls.tree
    recent = [f for f in row.failures if f[2] == tree and row.turn - f[1] < rule.window]
    recent = [*recent, (end.tool, row.turn, tree)][-book.history :]
    state = state.with_row(end.agent, replace(row, failures=tuple(recent)))
    count = sum(tool == end.tool for tool, *_ in recent)
    if not rule.trips(count):
        return state, None
    same = end.tool in RECORDS and state.calls.history.count(end.signature) >= count
    seen = rule.seen.format(tool=end.tool, count=count, window=rule.window)
    return _trip(state, rule, f"{seen}{' with the same input' if same else ''}", now, book, ack=same)


def _trip(
    state: CircuitState, rule: CircuitRule, seen: str, now: float, book: RuleBook, *, ack: bool = False
) -> tuple[CircuitState, CallDecision]:
    tripped = opened(state, rule, seen, now, ack=ack)
    return tripped, replace(refusal(tripped, book), kind=TRIP)


@dataclass(frozen=True, slots=True)
class CountedEnd:
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
    after = replace(after, calls=after.calls.found(habits))
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


def trip_on_cost(
    rows: Rows, circuit_id: str, limits: AgentLimits, now: datetime, book: RuleBook
) -> Answer | None:
    """Open the circuit where sub-agents and external calls have cost all that they may; None where they may go on."""
    if not book.enabled or not is_spent(read_agents(rows, circuit_id), limits):
        return None
    seen = f"sub-agents and external calls have cost {limits.block_text} or more"
    return trip(rows, circuit_id, "external_api", seen, now, book)


def lose_probe(rows: Rows, circuit_id: str, now: datetime, book: RuleBook) -> None:
    """Count the probe of a dead process as failed."""
    before = rows.circuit(circuit_id)
    if before is not None and before.probe is not None:
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
    alert = trip_alert(decision, now)
    rows.add_alert(alert)
    return (alert,)
