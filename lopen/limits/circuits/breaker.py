"""What a circuit breaker does with a call: before it, whether it may be made; after it, what its end means.

The call that trips is not made. Every rule of `lopen.limits.circuits.rules` is counted here; pure, like the state.
"""

from __future__ import annotations

from lopen.limits.circuits.circuit import (
    ALLOW,
    LATER,
    TRIP,
    CallDecision,
    CallOutcome,
    CircuitCall,
    CircuitState,
    closed,
    cooled,
    held,
    lost,
    opened,
)
from lopen.limits.circuits.rules import CircuitRule, RuleBook

PROBE_LOST_S = 900.0  # longer than any call may take: the process that made the probe is gone


def before_call(
    state: CircuitState, call: CircuitCall, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision]:
    """Whether `call` may be made, and the state that goes with the answer."""
    if not book.enabled:
        return state, CallDecision(ALLOW, state.circuit_id)
    state = cooled(_lost_probe(state, now, book), now)
    if state.state == "open":
        return state, held(state, book)
    if state.state == "half_open" and state.probe and not call.inner:
        return state, held(state.replace(cooldown_until=now + 1.0), book, "a probe is under way")
    counted = _counted(state, call, now, book)
    if call.kind == "oracle":
        until = _oracle_turn(state, now, book)
        if until is not None:
            wait = CallDecision(
                LATER, state.circuit_id, "external_api", "the window for external calls is full", until
            )
            return state, wait
    for rule, count, seen in _found(counted, call, book):
        if rule.trips(count):
            tripped = opened(counted, rule, seen, now)
            return tripped, held(tripped, book).replace(kind=TRIP)
    if book["external_api"].enabled and counted.external_total > book.api_session_max:
        seen = f"{book.api_session_max} external calls were made in this session, which is all it may"
        tripped = opened(counted, book["external_api"], seen, now, ack=True)
        return tripped, held(tripped, book).replace(kind=TRIP)
    if state.state == "half_open" and not state.probe:
        counted = counted.replace(probe=call.mark, probe_at=now)
    return counted, CallDecision(ALLOW, state.circuit_id)


def after_call(
    state: CircuitState, outcome: CallOutcome, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision | None]:
    """The state after a call ended; a decision where that ending tripped the circuit."""
    if not book.enabled:
        return state, None
    failed = is_failure(state, outcome)
    state = _remembered(state, outcome, book).replace(last_updated=now)
    if state.state == "half_open" and state.probe == outcome.mark:
        if not failed:
            return closed(state), None
        reopened = opened(
            state, book[state.rule], f"the probe after the cooldown failed ({outcome.tool})", now
        )
        return reopened, held(reopened, book).replace(kind=TRIP)
    if not failed or state.state != "closed":
        return state, None
    rule = book["tool_failure"]
    recent = [f for f in state.failures if state.turn - f[1] < rule.window]
    recent = [*recent, (outcome.tool, state.turn)][-book.history :]
    state = state.replace(failures=tuple(recent))
    count = sum(tool == outcome.tool for tool, _ in recent)
    if not rule.trips(count):
        return state, None
    tripped = opened(state, rule, f"{outcome.tool} failed {count} times within {rule.window:g} turns", now)
    return tripped, held(tripped, book).replace(kind=TRIP)


def is_failure(state: CircuitState, outcome: CallOutcome) -> bool:
    """`ok: false`, or the same command failing again over an unchanged tree."""
    if not outcome.ok:
        return True
    again = state.failed_trees.get(outcome.signature)
    return bool(outcome.exit_code) and bool(outcome.tree) and again == outcome.tree


def _lost_probe(state: CircuitState, now: float, book: RuleBook) -> CircuitState:
    return lost(state, now, book) if now - state.probe_at > PROBE_LOST_S else state


def _counted(state: CircuitState, call: CircuitCall, now: float, book: RuleBook) -> CircuitState:
    """The state with `call` in every window that it belongs to."""
    if call.kind != "oracle":  # lopen's own call belongs to no turn of the model's
        state = _turned(state, call)
    state = state.replace(last_updated=now)
    if call.kind == "hook":
        return state.replace(hooks=_in_turns(state.hooks, state.turn, book["hook_recursion"]))
    if call.kind == "agent":
        return state.replace(agents=_in_turns(state.agents, state.turn, book["agent_spawn"]))
    if call.kind in ("external", "oracle"):
        external = _in_seconds(state.external, now, book["external_api"])
        state = state.replace(external=external, external_total=state.external_total + 1)
    return state if call.kind == "oracle" else _tool_counted(state, call, now, book)


def _turned(state: CircuitState, call: CircuitCall) -> CircuitState:
    if call.turn != state.turn_label:
        state = state.replace(
            turn=state.turn + _turns(state.turn_label, call.turn), turn_label=call.turn, turn_calls={}
        )
    if call.task != state.task and not call.inner:
        state = state.replace(task=call.task, iteration_count=0)
    return state


def _turns(before: str, after: str) -> int:
    """Turns from one label to the next: numbers under one head are subtracted, anything else is one turn."""
    head, _, number = after.rpartition("/")
    earlier_head, _, earlier = before.rpartition("/")
    if head != earlier_head or not (number.isdecimal() and earlier.isdecimal()):
        return 1
    return max(1, int(number) - int(earlier))


def _tool_counted(state: CircuitState, call: CircuitCall, now: float, book: RuleBook) -> CircuitState:
    same = call.signature == state.last_tool_call
    return state.replace(
        iteration_count=state.iteration_count + _of_task(call),
        max_iterations=book["max_iterations"].threshold,
        duplicate_call_count=state.duplicate_call_count + 1 if same else 1,
        duplicate_threshold=book["duplicate_call"].threshold,
        last_tool_call=call.signature,
        turn_calls={**state.turn_calls, call.tool: state.turn_calls.get(call.tool, 0) + 1},
        times=_in_seconds(state.times, now, book["rapid_fire"]),
        history=(*state.history, call.signature)[-book.history :],
    )


def _of_task(call: CircuitCall) -> bool:
    """It counts towards the task's iterations: a sub-agent's calls are part of the one that started it."""
    return bool(call.task) and not call.inner


def _in_seconds(times: tuple[float, ...], now: float, rule: CircuitRule) -> tuple[float, ...]:
    """The calls of the window with this one; a clock set back empties it."""
    kept = [t for t in times if 0 <= now - t < rule.window]
    return (*kept, now)[-(rule.threshold + 1) :]


def _in_turns(turns: tuple[int, ...], turn: int, rule: CircuitRule) -> tuple[int, ...]:
    kept = [t for t in turns if turn - t < rule.window]
    return (*kept, turn)[-(rule.threshold + 1) :]


def _oracle_turn(state: CircuitState, now: float, book: RuleBook) -> float | None:
    """When lopen's own external call may be made; None for now."""
    rule = book["external_api"]
    window = _in_seconds(state.external, now, rule)
    return window[0] + rule.window if rule.trips(len(window)) else None


def _found(state: CircuitState, call: CircuitCall, book: RuleBook) -> list[tuple[CircuitRule, int, str]]:
    """Every rule that looks at this kind of call, what it counts, and how that is said."""
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
    same, total, recent = state.duplicate_call_count, state.iteration_count, len(state.times)
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
    if _of_task(call):
        seen = f"{total} tool calls since the last passing verify command"
        found.insert(1, (book["max_iterations"], total, seen))
    if call.kind == "external":
        rule, calls = book["external_api"], len(state.external)
        found.append((rule, calls, f"{calls} external calls within {rule.window:g} s"))
    return found


def _remembered(state: CircuitState, outcome: CallOutcome, book: RuleBook) -> CircuitState:
    """Failing commands with the tree they failed on; a passing one is forgotten."""
    trees = {s: t for s, t in state.failed_trees.items() if s != outcome.signature}
    if outcome.exit_code and outcome.tree:
        trees[outcome.signature] = outcome.tree
    return state.replace(failed_trees=dict(list(trees.items())[-book.history :]))
