"""The rules of the circuit breaker: whether a call may be made, and what its end means for the circuit.

The call that trips the circuit is not made. The rules read the history of calls
(`lopen.guardrails.call_history`) and count the windows that only circuits have: turns, seconds, kinds of call.
"""

from __future__ import annotations

from lopen.guardrails.call_history import CallEnd
from lopen.limits.circuits.circuit import (
    ALLOW,
    LATER,
    TRIP,
    CallDecision,
    CircuitCall,
    CircuitState,
    as_agent,
    as_main,
    closed,
    cooled,
    opened,
    probe_lost,
    refusal,
)
from lopen.limits.circuits.rules import CircuitRule, RuleBook

# Tools whose rejected input waiting cannot mend
RECORDS = frozenset(
    {"record_dependencies", "record_components", "select_component", "record_tasks"}
    | {"update_task_status", "update_subtask", "add_task", "split_task"}
)
PROBE_LOST_S = 900.0  # longer than any call may take


def before_call(
    state: CircuitState, call: CircuitCall, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision]:
    """Decide whether `call` may be made; return the new state and the decision."""
    if not book.enabled:
        return _in_history(state, call, book), CallDecision(ALLOW, state.circuit_id)
    if now - state.probe_at > PROBE_LOST_S:
        state = probe_lost(state, now, book)
    state = cooled(state, now)
    after, decision = _decided(as_agent(state, call.agent), call, now, book)
    return as_main(after, call.agent, state), decision


def _decided(
    state: CircuitState, call: CircuitCall, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision]:
    held = state.holds(call)
    if held and state.state == "open":
        return state, refusal(state, book)
    if held and state.probe and not call.inner:
        return state, refusal(state.replace(cooldown_until=now + 1.0), book, "a probe is under way")
    probes = held and not state.probe
    counted = _counted(state, call, now, book)
    if call.kind == "oracle":
        until = _oracle_turn(state, now, book)
        if until is not None:
            full = "the window for external calls is full"
            return state, CallDecision(LATER, state.circuit_id, "external_api", full, until)
    for rule, count, seen in _found(counted, call, book):
        if rule.trips(count) and not (probes and rule.name == state.rule):
            return _trip(_uncounted(counted, state), rule, seen, now, book)
    external = book["external_api"]
    if external.enabled and counted.external_total > book.api_session_max:
        seen = f"{book.api_session_max} external calls were made in this session, which is all it may"
        return _trip(_uncounted(counted, state), external, seen, now, book, ack=True)
    if probes:
        counted = counted.replace(probe=call.mark, probe_at=now)
    return counted, CallDecision(ALLOW, state.circuit_id)


def _uncounted(counted: CircuitState, before: CircuitState) -> CircuitState:
    """Take back what an external call or a start of a sub-agent counted that is refused."""
    return counted.replace(
        external=before.external, external_total=before.external_total, agents=before.agents
    )


def after_call(
    state: CircuitState, end: CallEnd, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision | None]:
    """Count the end of a call; return the new state, and a decision where the end tripped the circuit."""
    own, decision = _ended(as_agent(state, end.agent), end, now, book)
    return as_main(own, end.agent, state), decision


def _ended(
    state: CircuitState, end: CallEnd, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision | None]:
    calls = state.calls.ended(end, book.history)
    if end.progressed and calls.last_tool_call == end.signature:
        calls = calls.replace(duplicate_call_count=0)
    state = state.replace(calls=calls)
    if not book.enabled:
        return state, None
    failed = is_failure(state, end)
    state = state.replace(last_updated=now)
    if state.state == "half_open" and state.probe == end.mark:
        if not failed:
            return closed(state), None
        return _trip(state, book[state.rule], f"the probe after the cooldown failed ({end.tool})", now, book)
    if not failed or state.holds_all:
        return state, None
    rule = book["tool_failure"]
    tree = state.calls.tree
    recent = [
        (f[0], f[1], tree) for f in state.failures if tuple(f[2:]) == (tree,)
    ]  # earlier rows have no tree
    recent = [f for f in recent if state.turn - f[1] < rule.window]
    recent = [*recent, (end.tool, state.turn, tree)][-book.history :]
    state = state.replace(failures=tuple(recent))
    count = sum(tool == end.tool for tool, *_ in recent)
    if not rule.trips(count):
        return state, None
    same = end.tool in RECORDS and state.calls.history.count(end.signature) >= count
    seen = f"{end.tool} failed {count} times within {rule.window:g} turns{' with the same input' if same else ''}"
    return _trip(state, rule, seen, now, book, ack=same)


def is_failure(state: CircuitState, end: CallEnd) -> bool:
    """Tell whether a counted end is a failure: not `ok`, or the command failed again.

    Failures count over one state of the work tree only.
    """
    again = state.calls.failures_in_row(end.signature) > 1
    return not end.ok or (bool(end.exit_code) and bool(end.tree) and again)


def _trip(
    state: CircuitState, rule: CircuitRule, seen: str, now: float, book: RuleBook, *, ack: bool = False
) -> tuple[CircuitState, CallDecision]:
    tripped = opened(state, rule, seen, now, ack=ack)
    return tripped, refusal(tripped, book).replace(kind=TRIP)


def _counted(state: CircuitState, call: CircuitCall, now: float, book: RuleBook) -> CircuitState:
    """Count `call` in each window that it belongs to."""
    if call.kind != "oracle":  # lopen's own call belongs to no turn of the model
        state = _in_turn(state, call)
    state = state.replace(last_updated=now)
    if call.kind == "hook":
        return state.replace(hooks=_in_turns(state.hooks, state.turn, book["hook_recursion"]))
    if call.kind == "agent":
        return state.replace(agents=_in_turns(state.agents, state.turn, book["agent_spawn"]))
    if call.kind in ("external", "oracle"):
        external = _in_seconds(state.external, now, book["external_api"])
        state = state.replace(external=external, external_total=state.external_total + 1)
    if call.kind == "oracle":
        return state
    return _in_history(state, call, book).replace(
        max_iterations=book["max_iterations"].threshold,
        duplicate_threshold=book["duplicate_call"].threshold,
        turn_calls={**state.turn_calls, call.tool: state.turn_calls.get(call.tool, 0) + 1},
        times=_in_seconds(state.times, now, book["rapid_fire"]),
    )


def _in_history(state: CircuitState, call: CircuitCall, book: RuleBook) -> CircuitState:
    if call.kind not in ("tool", "external"):
        return state
    calls = state.calls.announced(call.signature, of_task=_of_task(call), kept=book.history)
    return state.replace(calls=calls)


def _in_turn(state: CircuitState, call: CircuitCall) -> CircuitState:
    if call.turn != state.turn_label:
        turn = state.turn + _turns(state.turn_label, call.turn)
        state = state.replace(turn=turn, turn_label=call.turn, turn_calls={})
    if call.task != state.task and not call.inner:
        state = state.replace(task=call.task, calls=state.calls.replace(iteration_count=0))
    return state


def _turns(before: str, after: str) -> int:
    """Count the turns between two labels: the difference of two numbers under one head, else one."""
    head, _, number = after.rpartition("/")
    earlier_head, _, earlier = before.rpartition("/")
    if head != earlier_head or not (number.isdecimal() and earlier.isdecimal()):
        return 1
    return max(1, int(number) - int(earlier))


def _of_task(call: CircuitCall) -> bool:
    """Tell whether the call counts as an iteration of the task; a sub-agent's calls do not."""
    return bool(call.task) and not call.inner and not call.agent


def _in_seconds(times: tuple[float, ...], now: float, rule: CircuitRule) -> tuple[float, ...]:
    """Add a call to the window; a clock that was set back empties it."""
    kept = [t for t in times if 0 <= now - t < rule.window]
    return (*kept, now)[-(rule.threshold + 1) :]


def _in_turns(turns: tuple[int, ...], turn: int, rule: CircuitRule) -> tuple[int, ...]:
    kept = [t for t in turns if turn - t < rule.window]
    return (*kept, turn)[-(rule.threshold + 1) :]


def _oracle_turn(state: CircuitState, now: float, book: RuleBook) -> float | None:
    """Return the time at which lopen may make its own external call; None for now."""
    rule = book["external_api"]
    window = _in_seconds(state.external, now, rule)
    return window[0] + rule.window if rule.trips(len(window)) else None


def _found(state: CircuitState, call: CircuitCall, book: RuleBook) -> list[tuple[CircuitRule, int, str]]:
    """Return each rule for this kind of call, with its count and a description of the count."""
    if call.kind == "hook":
        rule = book["hook_recursion"]
        seen = f"the hook {call.tool} ran {len(state.hooks)} times within {rule.window:g} turns"
        return [(rule, len(state.hooks), seen)]
    if call.kind == "agent":
        rule = book["agent_spawn"]
        seen = f"{len(state.agents)} sub-agents were started within {rule.window:g} turns"
        return [(rule, len(state.agents), seen)]
    if call.kind == "oracle":
        return []
    return _tool_rules(state, call, book)


def _tool_rules(state: CircuitState, call: CircuitCall, book: RuleBook) -> list[tuple[CircuitRule, int, str]]:
    same, total = state.calls.duplicate_call_count, state.calls.iteration_count
    recent = len(state.times)
    in_turn = state.turn_calls.get(call.tool, 0)
    found = [
        (
            book["duplicate_call"],
            same,
            f"{call.tool} was called {same} times in a row with the same arguments",
        ),
        (book["sequential_tool"], in_turn, f"{call.tool} was called {in_turn} times in one turn"),
        (book["rapid_fire"], recent, f"{recent} calls within {book['rapid_fire'].window:g} s"),
    ]
    if _of_task(call) and not call.verifies:  # which would set the count back
        since = "the last passing verify command" if book.verifiable else "the person's last prompt"
        seen = f"{total} tool calls since {since}"
        found.insert(1, (book["max_iterations"], total, seen))
    if call.kind == "external":
        rule, calls = book["external_api"], len(state.external)
        found.append((rule, calls, f"{calls} external calls within {rule.window:g} s"))
    return found
