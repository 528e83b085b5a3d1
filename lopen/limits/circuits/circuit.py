"""The circuit breaker's state and how it changes: opened, cooled, acknowledged, closed.

closed → open → half_open → closed. In half_open one probe is let through; only its success closes the
circuit, its failure opens it again a rung higher. State is bounded: windows hold no more than their
threshold asks for, the history 50 calls. Pure; `now` is seconds since the epoch.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from lopen.limits.circuits.rules import LAST_RUNG, CircuitRule, RuleBook
from lopen.limits.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

WHOLE_SESSION = "*"  # the task of a caller whose whole session is one
ALLOW, TRIP, WAIT, ACK, LATER = "allow", "trip", "wait", "ack", "later"


class CircuitCall(Value):
    """A call about to be made.

    `turn` is the caller's label of the turn; a new label is a new turn (`head/7` is two after `head/5`). `kind`: "tool", "hook", "agent",
    "external" (a script that calls an outside model), or "oracle" (lopen's own such call, which waits
    for its turn instead of tripping). `inner`: made by a call that was let through (a sub-agent's, the
    oracle's): it belongs to the probe where that one is the probe. `task` is "" where there is none, and so
    no verify command that could end a count. `nonce` is this one call's own mark, where its maker has one.
    """

    tool: str
    signature: str
    turn: str
    kind: str = "tool"
    task: str = WHOLE_SESSION
    inner: bool = False
    nonce: str = ""

    @property
    def mark(self) -> str:
        """What its outcome is known by."""
        return self.nonce or self.signature


class CallOutcome(Value):
    """How a call ended. `exit_code` and `tree` (id of the work tree) are given for commands, `nonce` as in its `Call`."""

    tool: str
    signature: str
    ok: bool
    exit_code: int | None = None
    tree: str = ""
    nonce: str = ""

    @property
    def mark(self) -> str:
        """What its call is known by."""
        return self.nonce or self.signature


class CallDecision(Value):
    """What a call is told.

    allow; trip (this call opened the circuit); wait (open until `until`); ack (a person is needed); later
    (nothing is wrong, a rate is used up until `until`).
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
        """The call may be made."""
        return self.kind == ALLOW


class CircuitState(Value):
    """A circuit as it stands."""

    circuit_id: str
    state: str = "closed"  # closed, open, half_open
    iteration_count: int = 0  # tool calls of the task since the last passing verify command
    max_iterations: int = 50
    duplicate_call_count: int = 0
    duplicate_threshold: int = 5
    last_tool_call: str = ""
    trip_reason: str = ""
    tripped_at: float | None = None
    last_updated: float = 0.0
    rule: str = ""  # the one that tripped
    cooldown_until: float = 0.0
    needs_ack: bool = False
    trips_in_row: int = 0
    trips: int = 0
    probe: str = ""  # mark of the probe under way
    probe_at: float = 0.0
    task: str = ""
    turn: int = 0
    turn_label: str = ""
    turn_calls: Mapping[str, int] = {}
    times: tuple[float, ...] = ()
    failures: tuple[tuple[str, int], ...] = ()  # (tool, turn)
    hooks: tuple[int, ...] = ()
    agents: tuple[int, ...] = ()
    external: tuple[float, ...] = ()
    external_total: int = 0
    failed_trees: Mapping[str, str] = {}  # signature of a failed command → tree it ran on
    history: tuple[str, ...] = ()

    @property
    def tripped(self) -> bool:
        """Calls are held back."""
        return self.state == "open"


def verified(state: CircuitState) -> CircuitState:
    """A verify command passed: the task's calls are counted from here."""
    return state.replace(iteration_count=0)


def acknowledged(state: CircuitState) -> CircuitState:
    """A person said to go on: one probe may be made. A closed circuit stays as it is."""
    return half_open(state) if state.state == "open" else state


def closed(state: CircuitState) -> CircuitState:
    """Back to normal; the ladder begins anew."""
    return _cleared(state).replace(state="closed", trips_in_row=0, rule="", trip_reason="", tripped_at=None)


def opened(
    state: CircuitState, rule: CircuitRule, seen: str, now: float, *, ack: bool = False
) -> CircuitState:
    """Tripped by `rule`; the fifth trip in a row needs a person, whatever the rule."""
    row = state.trips_in_row + 1
    return state.replace(
        state="open",
        rule=rule.name,
        trip_reason=seen,
        tripped_at=now,
        last_updated=now,
        cooldown_until=now + rule.cooldown(row),
        needs_ack=ack or rule.needs_ack or row >= LAST_RUNG,
        trips_in_row=row,
        trips=state.trips + 1,
        probe="",
    )


def held(state: CircuitState, book: RuleBook, seen: str = "") -> CallDecision:
    """What a call is told while the circuit holds it back."""
    return CallDecision(
        ACK if state.needs_ack else WAIT,
        state.circuit_id,
        state.rule,
        seen or state.trip_reason,
        None if state.needs_ack else state.cooldown_until,
        book[state.rule].instead if state.rule else "",
        state.needs_ack,
    )


def lost(state: CircuitState, now: float, book: RuleBook) -> CircuitState:
    """The process that made the probe under way is gone: the probe counts as failed."""
    if state.state != "half_open" or not state.probe:
        return state
    return opened(state, book[state.rule], "the probe after the cooldown never came back", now)


def cooled(state: CircuitState, now: float) -> CircuitState:
    if state.state != "open" or state.needs_ack:
        return state
    went_back = (
        state.tripped_at is not None and now < state.tripped_at
    )  # the clock was set back: do not wait for it
    return half_open(state) if now >= state.cooldown_until or went_back else state


def half_open(state: CircuitState) -> CircuitState:
    return _cleared(state).replace(state="half_open", needs_ack=False)


def _cleared(state: CircuitState) -> CircuitState:
    """Windows emptied, so that what tripped the circuit is not held against the probe."""
    return state.replace(
        probe="",
        cooldown_until=0.0,
        duplicate_call_count=0,
        last_tool_call="",
        iteration_count=0 if state.rule == "max_iterations" else state.iteration_count,
        turn_calls={},
        times=(),
        failures=(),
        hooks=(),
        agents=(),
        external=(),
        external_total=0 if state.rule == "external_api" and state.needs_ack else state.external_total,
    )
