"""The state of a circuit breaker and its changes: open, half open, closed, acknowledged.

closed → open → half_open → closed. In half_open one probe is allowed: its success closes the circuit, its
failure opens it again with the next longer cooldown. State is bounded: a window holds one entry more than its
threshold. Pure; `now` is in seconds since the epoch.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lopen.guardrails.call_history import CallHistory
from lopen.limits.rules import BY_NAME, LAST_RUNG, CircuitRule, RuleBook

WHOLE_SESSION = "*"  # the task of a caller without tasks
AGENTS_KEPT = 32
MAIN = ""  # the main agent's name among the rows
OUTLIVES_COOLDOWN = ("external_api", "agent_spawn")  # windows that count on after it
ALLOW, TRIP, WAIT, ACK, LATER = "allow", "trip", "wait", "ack", "later"


@dataclass(frozen=True, slots=True)
class CircuitCall:
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
    agent: str = MAIN
    verifies: bool = False

    @property
    def mark(self) -> str:
        """Return the mark that identifies the call."""
        return self.nonce or self.signature

    @property
    def of_task(self) -> bool:
        """Tell whether the call counts as an iteration of the task; a sub-agent's calls do not."""
        return bool(self.task) and not self.inner and not self.agent


@dataclass(frozen=True, slots=True)
class CallDecision:
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


@dataclass(frozen=True, slots=True)
class AgentRow:
    """The turn of one agent, the calls of each tool in it, its identical calls in a row, and its latest failures.

    A failure is (tool, turn, number of the work tree's state).
    """

    turn: int = 0
    label: str = ""
    calls: Mapping[str, int] = field(default_factory=dict)
    last_call: str = ""
    same_calls: int = 0
    failures: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class CircuitState:
    """The state of a circuit, with the history of calls that its rules count.

    `windows` holds the seconds or turns of the calls that a rule counts; `rows` what is counted of each agent.
    """

    circuit_id: str
    state: str = "closed"  # closed, open, half_open
    calls: CallHistory = field(default_factory=CallHistory)
    rule: str = ""  # that tripped
    trip_reason: str = ""
    tripped_at: float | None = None
    last_updated: float = 0.0
    cooldown_until: float = 0.0
    needs_ack: bool = False
    trips_in_row: int = 0
    trips: int = 0
    probe: tuple[str, float] | None = None  # the running probe's mark, and when it began
    windows: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    rows: Mapping[str, AgentRow] = field(default_factory=dict)
    external_total: int = 0

    @property
    def tripped(self) -> bool:
        """Tell whether calls are refused."""
        return self.state == "open"

    @property
    def holds_all(self) -> bool:
        """Tell whether the circuit is about every kind of call."""
        return self.state != "closed" and not BY_NAME[self.rule].own

    def holds(self, call: CircuitCall) -> bool:
        """Tell whether the circuit is about this call. Rules about one kind of call hold no other kind."""
        if self.state == "closed" or (self.rule == "max_iterations" and call.verifies):
            return False
        return self.holds_all or call.kind in BY_NAME[self.rule].kinds

    def row(self, agent: str = MAIN) -> AgentRow:
        """Return what is counted of an agent."""
        return self.rows.get(agent, AgentRow())

    def with_row(self, agent: str, row: AgentRow) -> CircuitState:
        """Keep what is counted of an agent; of sub-agents the latest."""
        others = [(name, each) for name, each in self.rows.items() if name not in (MAIN, agent)]
        main = {MAIN: row if agent == MAIN else self.row()}
        named = [*others, (agent, row)] if agent != MAIN else others
        return replace(self, rows={**main, **dict(named[-AGENTS_KEPT:])})


def verified(state: CircuitState) -> CircuitState:
    """Count the task's calls from here: a verify command passed."""
    return replace(state, calls=replace(state.calls, iteration_count=0))


def acknowledged(state: CircuitState) -> CircuitState:
    """Allow one probe after a person's acknowledgement. A closed circuit stays as it is."""
    return half_open(state) if state.state == "open" else state


def closed(state: CircuitState) -> CircuitState:
    """Close the circuit; the cooldowns start from the shortest again."""
    state = _cleared(state)
    return replace(state, state="closed", trips_in_row=0, rule="", trip_reason="", tripped_at=None)


def opened(
    state: CircuitState, rule: CircuitRule, seen: str, now: float, *, ack: bool = False
) -> CircuitState:
    """Open the circuit for `rule`; the fifth trip in a row needs a person, with any rule."""
    row = state.trips_in_row + 1
    free_at = 0.0
    window = state.windows.get(rule.name, ())
    if rule.name == "external_api" and len(window) >= rule.threshold:
        free_at = window[-rule.threshold] + rule.window
    return replace(
        state,
        state="open",
        rule=rule.name,
        trip_reason=seen,
        tripped_at=now,
        last_updated=now,
        cooldown_until=max(now + rule.cooldown(row), free_at),
        needs_ack=ack or rule.needs_ack or row >= LAST_RUNG,
        trips_in_row=row,
        trips=state.trips + 1,
        probe=None,
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
    if state.state != "half_open" or state.probe is None:
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
    return replace(_cleared(state), state="half_open", needs_ack=False)


def _cleared(state: CircuitState) -> CircuitState:
    """Empty the windows, so that the calls that tripped the circuit do not count for the probe.

    Those of external calls and of sub-agents outlive a cooldown, and so does a row of identical calls: only the person
    who lets one go on begins it anew.
    """
    anew = state.rule == "duplicate_call" or state.needs_ack
    rows = {
        agent: AgentRow(row.turn, row.label)
        if anew
        else AgentRow(row.turn, row.label, last_call=row.last_call, same_calls=row.same_calls)
        for agent, row in state.rows.items()
    }
    iterations = 0 if state.rule == "max_iterations" else state.calls.iteration_count
    return replace(
        state,
        probe=None,
        cooldown_until=0.0,
        calls=replace(state.calls, iteration_count=iterations),
        windows={name: window for name, window in state.windows.items() if name in OUTLIVES_COOLDOWN},
        rows=rows,
        external_total=0 if state.rule == "external_api" and state.needs_ack else state.external_total,
    )
