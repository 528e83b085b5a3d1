"""The state of a circuit breaker and its changes: open, half open, closed, acknowledged.

closed → open → half_open → closed. In half_open one probe is allowed: its success closes the circuit, its
failure opens it again with the next longer cooldown. State is bounded: a window holds one entry more than its
threshold. Pure; `now` is in seconds since the epoch.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from lopen.core.quick_stdlib import Value
from lopen.guardrails.call_history import CallHistory
from lopen.limits.circuits.rules import LAST_RUNG, CircuitRule, RuleBook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

WHOLE_SESSION = "*"  # the task of a caller without tasks
# Rules about one kind of call, with the kinds they hold
ABOUT = {"external_api": ("external", "oracle"), "agent_spawn": ("agent",), "hook_recursion": ("hook",)}
STREAK = ("turn", "turn_label", "turn_calls", "failures")
ROW = ("last_tool_call", "duplicate_call_count")
AGENTS_KEPT = 32
ALLOW, TRIP, WAIT, ACK, LATER = "allow", "trip", "wait", "ack", "later"


class CircuitCall(Value):
    """A call that is about to be made.

    `turn` is the caller's label of the turn: a new label is a new turn, and `head/7` is two turns after
    `head/5`. `kind`: "tool", "hook", "agent", "external" (a script that calls an outside model) or "oracle"
    (the same by lopen, which waits for its turn and does not trip). `inner`: made inside an allowed call, by a
    sub-agent or the oracle; it belongs to that call's probe. `task` is "" where no verify command can end a
    count. `nonce` identifies this one call, where the caller has an id for it. `agent` is the sub-agent that makes
    the call, whose rows are counted apart. `verifies`: it runs a verify command.
    """

    tool: str
    signature: str
    turn: str
    kind: str = "tool"
    task: str = WHOLE_SESSION
    inner: bool = False
    nonce: str = ""
    agent: str = ""
    verifies: bool = False

    @property
    def mark(self) -> str:
        """Return the mark that identifies the call."""
        return self.nonce or self.signature


class CallDecision(Value):
    """The decision about a call.

    `kind`: allow; trip (this call opened the circuit); wait (open until `until`); ack (a person is needed);
    later (the rate is used up until `until`).
    """

    kind: str
    circuit_id: str = ""
    rule: str = ""
    seen: str = ""
    until: float | None = None
    instead: str = ""
    needs_ack: bool = False

    @property
    def allowed(self) -> bool:
        """Tell whether the call may be made."""
        return self.kind == ALLOW


class CircuitState(Value):
    """The state of a circuit, with the history of calls that its rules count."""

    circuit_id: str
    state: str = "closed"  # closed, open, half_open
    calls: CallHistory = CallHistory()
    max_iterations: int = 50
    duplicate_threshold: int = 5
    trip_reason: str = ""
    tripped_at: float | None = None
    last_updated: float = 0.0
    rule: str = ""  # that tripped
    cooldown_until: float = 0.0
    needs_ack: bool = False
    trips_in_row: int = 0
    trips: int = 0
    probe: str = ""  # mark of the running probe
    probe_at: float = 0.0
    task: str = ""
    turn: int = 0
    turn_label: str = ""
    turn_calls: Mapping[str, int] = {}
    times: tuple[float, ...] = ()
    failures: tuple[tuple[str, int, int], ...] = ()  # (tool, turn, number of the work tree's state)
    hooks: tuple[int, ...] = ()
    agents: tuple[int, ...] = ()
    external: tuple[float, ...] = ()
    external_total: int = 0
    streaks: Mapping[str, Mapping[str, Any]] = {}  # sub-agent → its values of `STREAK` and `ROW`

    @property
    def tripped(self) -> bool:
        """Tell whether calls are refused."""
        return self.state == "open"

    def holds(self, call: CircuitCall) -> bool:
        """Tell whether the circuit is about this call. Rules about one kind of call hold no other kind."""
        if self.state == "closed" or (self.rule == "max_iterations" and call.verifies):
            return False
        return call.kind in ABOUT.get(self.rule, (call.kind,))

    @property
    def holds_all(self) -> bool:
        """Tell whether the circuit is about every kind of call."""
        return self.state != "closed" and self.rule not in ABOUT


def as_agent(state: CircuitState, agent: str) -> CircuitState:
    """Return the state with the rows and turns of a sub-agent in the place of the main agent's."""
    if not agent:
        return state
    own = state.streaks.get(agent, {})
    calls = state.calls.replace(**{name: own.get(name, CallHistory.blank[name]) for name in ROW})
    turns = {name: own.get(name, CircuitState.blank[name]) for name in STREAK}
    return state.replace(calls=calls, **turns)


def as_main(state: CircuitState, agent: str, before: CircuitState) -> CircuitState:
    """Take back `as_agent`: keep the sub-agent's rows under its name, with the main agent's from `before`."""
    if not agent:
        return state
    own = {name: getattr(state, name) for name in STREAK} | {name: getattr(state.calls, name) for name in ROW}
    others = {name: rows for name, rows in state.streaks.items() if name != agent}
    calls = state.calls.replace(**{name: getattr(before.calls, name) for name in ROW})
    turns = {name: getattr(before, name) for name in STREAK}
    kept = dict([*others.items(), (agent, own)][-AGENTS_KEPT:])
    return state.replace(calls=calls, streaks=kept, **turns)


def verified(state: CircuitState) -> CircuitState:
    """Count the task's calls from here: a verify command passed."""
    return state.replace(calls=state.calls.replace(iteration_count=0))


def acknowledged(state: CircuitState) -> CircuitState:
    """Allow one probe after a person's acknowledgement. A closed circuit stays as it is."""
    return half_open(state) if state.state == "open" else state


def closed(state: CircuitState) -> CircuitState:
    """Close the circuit; the cooldowns start from the shortest again."""
    return _cleared(state).replace(state="closed", trips_in_row=0, rule="", trip_reason="", tripped_at=None)


def opened(
    state: CircuitState, rule: CircuitRule, seen: str, now: float, *, ack: bool = False
) -> CircuitState:
    """Open the circuit for `rule`; the fifth trip in a row needs a person, with any rule."""
    row = state.trips_in_row + 1
    free_at = 0.0
    if rule.name == "external_api" and len(state.external) >= rule.threshold:
        free_at = state.external[-rule.threshold] + rule.window
    return state.replace(
        state="open",
        rule=rule.name,
        trip_reason=seen,
        tripped_at=now,
        last_updated=now,
        cooldown_until=max(now + rule.cooldown(row), free_at),
        needs_ack=ack or rule.needs_ack or row >= LAST_RUNG,
        trips_in_row=row,
        trips=state.trips + 1,
        probe="",
    )


def refusal(state: CircuitState, book: RuleBook, seen: str = "") -> CallDecision:
    """Return the decision for a call that an open circuit refuses."""
    return CallDecision(
        ACK if state.needs_ack else WAIT,
        state.circuit_id,
        state.rule,
        seen or state.trip_reason,
        None if state.needs_ack else state.cooldown_until,
        book[state.rule].instead if state.rule else "",
        state.needs_ack,
    )


def probe_lost(state: CircuitState, now: float, book: RuleBook) -> CircuitState:
    """Count the running probe as failed: its process is gone."""
    if state.state != "half_open" or not state.probe:
        return state
    return opened(state, book[state.rule], "the probe after the cooldown never ended", now)


def cooled(state: CircuitState, now: float) -> CircuitState:
    """Half-open a circuit at the end of its cooldown, or where the clock was set back."""
    if state.state != "open" or state.needs_ack:
        return state
    set_back = state.tripped_at is not None and now < state.tripped_at
    return half_open(state) if now >= state.cooldown_until or set_back else state


def half_open(state: CircuitState) -> CircuitState:
    """Allow one probe."""
    return _cleared(state).replace(state="half_open", needs_ack=False)


def _cleared(state: CircuitState) -> CircuitState:
    """Empty the windows, so that the calls that tripped the circuit do not count for the probe.

    Those of external calls and of sub-agents outlive a cooldown, and so does a row of identical calls: only the person
    who lets one go on begins it anew.
    """
    begun_anew = state.rule == "duplicate_call" or state.needs_ack
    row = {name: CallHistory.blank[name] for name in ROW} if begun_anew else {}
    rows = {agent: {name: own[name] for name in ROW if name in own} for agent, own in state.streaks.items()}
    return state.replace(
        probe="",
        cooldown_until=0.0,
        calls=state.calls.replace(
            **row,
            iteration_count=0 if state.rule == "max_iterations" else state.calls.iteration_count,
        ),
        turn_calls={},
        times=(),
        failures=(),
        hooks=(),
        streaks={} if begun_anew else rows,
        external_total=0 if state.rule == "external_api" and state.needs_ack else state.external_total,
    )
