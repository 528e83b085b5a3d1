"""Circuits: the table of rules, the state of a circuit, and the effects of a call and its end.

closed → open → half_open → closed. In half_open one probe is allowed: its success closes the circuit, its
failure opens it again with the next longer cooldown. The call that trips the circuit is not made, and not logged. Every
rule counts over one log of calls (`guardrails.call_history`). Pure: `before_call` and `after_call` decide, and
`call_gate` applies them to a store. `now` is in seconds since the epoch.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from lopen.guardrails.call_history import CALLS_KEPT, CallEnd, CallHistory, LoggedCall
from lopen.limits.records import Alert, raised
from lopen.settings.rule_numbers import RULE_NUMBERS

if TYPE_CHECKING:
    from lopen.core.events import Event

# the rules

LADDER = (1.0, 2.0, 6.0, 12.0, 60.0)  # cooldowns of trips in a row, as multiples of the first
LAST_RUNG = len(LADDER)  # the trip in a row that needs a person
Unit = Literal["seconds", "turns", "task", "row"]
TOOLS: tuple[str, ...] = ("tool", "external")


@dataclass(frozen=True, slots=True)
class CircuitRule:
    """When a circuit trips, and how it recovers.

    `kinds` are the calls that the rule counts; where it is `own`, its circuit holds these kinds alone, else all.
    `over` tells "more than N" from "N". `window` is counted in `unit`: seconds, turns, the task, or the calls of
    a row (then it is 0). `ladder` holds the cooldown in seconds of the first, second, … trip in a row; empty where
    only a person's acknowledgement lets calls go on. `seen` describes a count.
    """

    name: str
    kinds: tuple[str, ...]
    threshold: int
    over: bool
    window: float
    unit: Unit
    ladder: tuple[float, ...]
    seen: str
    instead: str
    own: bool = False
    enabled: bool = True

    @property
    def needs_ack(self) -> bool:
        """Only a person can let work go on."""
        return not self.ladder

    def trips(self, count: int) -> bool:
        """Return True if so many in the window are too many."""
        return self.enabled and (count > self.threshold if self.over else count >= self.threshold)

    def described(self, tool: str, count: int) -> str:
        """Describe a count of calls, of which the last was of `tool`."""
        return self.seen.format(tool=tool, count=count, window=self.window)

    def cooldown(self, trips_in_row: int) -> float:
        """Seconds to wait after the n-th trip in a row (from 1)."""
        return self.ladder[min(trips_in_row, len(self.ladder)) - 1] if self.ladder else 0.0


def _ladder(rule: str, base: float | None) -> tuple[float, ...]:
    """Return the cooldowns after the first, second, … trip in a row; that of `rapid_fire` does not climb."""
    if base is None:
        return ()
    return (base,) if rule == "rapid_fire" else tuple(base * times for times in LADDER)


def _rule(
    name: str, kinds: tuple[str, ...], over: bool, unit: Unit, seen: str, instead: str, *, own: bool = False
) -> CircuitRule:
    numbers = RULE_NUMBERS[name]
    ladder = _ladder(name, numbers.cooldown_base)
    return CircuitRule(name, kinds, numbers.threshold, over, numbers.window, unit, ladder, seen, instead, own)


# fmt: off
RULES: tuple[CircuitRule, ...] = (
    _rule(
        "max_iterations", TOOLS, False, "task",
        "{count} tool calls without a passing verify command",
        "run the verification, or say what is done and what is in the way",
    ),
    _rule(
        "duplicate_call", TOOLS, False, "row",
        "{tool} was called {count} times in a row with the same arguments",
        "the result will not change: use what it gave, or try another way",
    ),
    _rule(
        "rapid_fire", TOOLS, False, "seconds",
        "{count} calls within {window:g} s",
        "gather what is needed in fewer, larger calls",
    ),
    _rule(
        "tool_failure", TOOLS, True, "turns",
        "{tool} failed {count} times within {window:g} turns",
        "read the error, check the premises, take another tool or path",
    ),
    _rule(
        "sequential_tool", TOOLS, True, "turns",
        "{tool} was called {count} times in one turn",
        "search first, or do the work of many calls in one command",
    ),
    _rule(
        "hook_recursion", ("hook",), True, "turns",
        "the hook {tool} ran {count} times within {window:g} turns",
        "do not call the hook from what it hooks",
        own=True,
    ),
    _rule(
        "agent_spawn", ("agent",), True, "turns",
        "{count} sub-agents were started within {window:g} turns",
        "let the running sub-agents finish, or do it yourself",
        own=True,
    ),
    _rule(
        "external_api", ("external", "oracle"), True, "seconds",
        "{count} external calls within {window:g} s",
        "work with the answers at hand until the window is free",
        own=True,
    ),
)
# fmt: on
BY_NAME: Mapping[str, CircuitRule] = {rule.name: rule for rule in RULES}


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The rules that hold here, with the limits that stand beside them.

    `history`: calls remembered for finding patterns.
    """

    rules: Mapping[str, CircuitRule] = field(default_factory=lambda: BY_NAME)
    api_session_max: int = 50
    enabled: bool = True
    history: int = CALLS_KEPT

    def __getitem__(self, name: str) -> CircuitRule:
        return self.rules[name]

    @property
    def kept(self) -> int:
        """Calls of each kind that are logged: at least as many as a rule counts."""
        counted = (rule.threshold + 1 for rule in self.rules.values() if rule.unit != "task")
        return max(self.history, *counted)


def _configured(rule: CircuitRule, settings: Mapping[str, Any]) -> CircuitRule:
    """`rule` with `circuit.<rule>.enabled/threshold/window/cooldown_base`."""
    return replace(
        rule,
        enabled=settings.get("enabled", True),
        threshold=settings.get("threshold", rule.threshold),
        window=settings.get("window", rule.window),
        ladder=_ladder(rule.name, settings["cooldown_base"]) if "cooldown_base" in settings else rule.ladder,
    )


def rule_book(
    circuit: Mapping[str, Any],
    *,
    api_session_max: int = 50,
    exempt: tuple[str, ...] = (),
    history: int = CALLS_KEPT,
) -> RuleBook:
    """The book of the settings' `circuit` table. `exempt` rules never trip (a model on loopback, a replay)."""
    rules = {r.name: _configured(r, circuit.get(r.name) or {}) for r in RULES}
    rules |= {name: replace(rules[name], enabled=False) for name in exempt}
    return RuleBook(rules, api_session_max, bool(circuit.get("enabled", True)), history)


# a circuit

WHOLE_SESSION = "*"  # the task of a caller without tasks
OUTLIVES_COOLDOWN = ("external", "oracle", "agent")  # kinds of calls that count on after it
ALLOW, TRIP, WAIT, ACK, LATER = "allow", "trip", "wait", "ack", "later"


@dataclass(frozen=True, slots=True)
class CircuitCall:
    """A call that is about to be made.

    `turn` is the caller's label of the turn: a new label is a new turn. `kind`: "tool", "hook", "agent", "external" (a script that calls an outside model) or "oracle"
    (lopen's own such call, which waits for its turn and does not trip). `inner`: made inside an allowed call, by a
    sub-agent or the oracle; it belongs to that call's probe. `task` is "" where no verify command can end a
    count. `nonce` identifies this one call, where the caller has an id for it. `agent` is the sub-agent that makes
    the call, whose rows are counted apart. `verifies`: it runs a verify command. `subject` is the file that a call
    writes (`call_history.subject_of`).
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
    subject: str = ""

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
    later (the rate is used up until `until`). Until then the caller waits; with `needs_ack` only `command`, a
    person's, lets calls go on. `alerts` were raised by a trip.
    """

    kind: str
    circuit_id: str = ""
    rule: str = ""
    seen: str = ""
    until: float | None = None
    instead: str = ""
    needs_ack: bool = False
    alerts: tuple[Alert, ...] = ()

    @property
    def allowed(self) -> bool:
        """Tell whether the call may be made."""
        return self.kind == ALLOW

    @property
    def command(self) -> str:
        """Return the person's command that lets calls go on; "" where none is needed."""
        return f"lopen circuit ack {self.circuit_id}" if self.needs_ack else ""

    def text(self, now: datetime, *, short: bool = False) -> str:
        """Say why a call is held back: reason and workaround, then until when or the person's command.

        `short`: in two lines, and without the circuit's id, which the command finds where one circuit alone waits.
        """
        later = self.kind == LATER
        reason = f"{'Resource limit reached' if later else 'Circuit breaker tripped'}: {self.seen}."
        if self.instead:
            reason += f" Instead: {self.instead}."
        ways = []
        if self.until is not None:
            wait = max(1, -int((now.timestamp() - self.until) // 1))  # rounded up, as is the time of day
            until = datetime.fromtimestamp(-(-self.until // 1), UTC).strftime("%H:%M:%S UTC")
            ways.append(
                f"Cooldown: {wait}s, until {until}{'' if later else '; then one call is let through'}."
            )
        if self.rule == "agent_spawn":
            ways.append("SUDO PARALLEL in the person's prompt lifts the limits on sub-agents.")
        if self.needs_ack:
            ways.append(f"A person lets it go on with: {'lopen circuit ack' if short else self.command}")
        return ("\n" if short else " ").join([reason, " ".join(ways)] if ways else [reason])

    def events(self, now: datetime) -> tuple[Event, ...]:
        """Return the events of a trip; none for a call that an open circuit holds back."""
        from lopen.core.events import GuardrailRaised  # late: a hook raises none
        from lopen.guardrails.resource_limits import CIRCUITS

        if self.kind != TRIP:
            return raised(self.alerts)
        wait_s = 0.0 if self.until is None else max(0.0, self.until - now.timestamp())
        action = (
            "pauses until a person acknowledges the circuit"
            if self.needs_ack
            else f"holds calls for {wait_s:.0f} s, then allows one"
        )
        return (
            *raised(self.alerts),
            GuardrailRaised(
                CIRCUITS, "block" if self.needs_ack else "warn", f"{self.rule}: {self.seen}", action
            ),
        )


@dataclass(frozen=True, slots=True)
class CircuitState:
    """The state of a circuit, with the history of calls that its rules count."""

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

    def identical_calls(self, agent: str = "") -> int:
        """Return how many calls of an agent in a row are the same as its latest."""
        row = 0
        own = [call for call in self.calls.log if call.agent == agent and call.kind in TOOLS]
        for call in reversed(own):
            if call.signature != own[-1].signature or call.ends_row:
                break
            row += 1
        return row

    def recent_external(self, now: float) -> int:
        """Return the external calls of the last minute."""
        return len(_within(BY_NAME["external_api"], self.calls.log, now))


def verified(state: CircuitState) -> CircuitState:
    """Count the task's calls from here: a verify command passed."""
    return replace(state, calls=replace(state.calls, iteration_count=0))


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
    times = [call.at for call in state.calls.log if call.kind in rule.kinds]
    if rule.name == "external_api" and len(times) >= rule.threshold:
        free_at = times[-rule.threshold] + rule.window
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
    """Let the calls that tripped the circuit not count for the probe.

    External calls and starts of sub-agents count on after a cooldown, and so does a row of identical calls: only a
    person who acknowledges the circuit begins it anew.
    """
    anew = state.rule == "duplicate_call" or state.needs_ack
    log = (
        replace(call, ends_row=call.ends_row or anew)
        if call.kind in OUTLIVES_COOLDOWN
        else replace(call, past=True)
        for call in state.calls.log
        if call.kind in OUTLIVES_COOLDOWN or not anew
    )
    iterations = 0 if state.rule == "max_iterations" else state.calls.iteration_count
    return replace(
        state,
        probe=None,
        cooldown_until=0.0,
        calls=replace(state.calls, iteration_count=iterations, log=tuple(log)),
        external_total=0 if state.rule == "external_api" and state.needs_ack else state.external_total,
    )


# a call

# Tools that record lopen's own state: waiting cannot mend an input that they refuse
RECORDS = frozenset(
    {"record_dependencies", "record_components", "select_component", "record_tasks"}
    | {"update_task_status", "add_task", "split_task"}
)
PROBE_LOST_S = 900.0  # longer than any call may take


def before_call(
    state: CircuitState, call: CircuitCall, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision]:
    """Decide whether `call` may be made; return the new state and the decision.

    A call that was cut off and is made again (by its `nonce`) was counted already.
    """
    if not book.enabled:
        return _logged(state, call, now, book), CallDecision(ALLOW, state.circuit_id)
    if state.probe is not None and now - state.probe[1] > PROBE_LOST_S:
        state = replace(state, probe=None)
    state = cooled(state, now)
    held = state.holds(call)
    if held and state.tripped:
        return state, refusal(state, book)
    if held and state.probe is not None and state.probe[0] != call.nonce and not call.inner:
        return state, refusal(replace(state, cooldown_until=now + 1.0), book, "a probe is under way")
    probes = held and state.probe is None
    logged = state
    if not call.nonce or state.calls.call(call.nonce) is None:
        logged = _logged(state, call, now, book)
        if refused := _refused(state, logged, call, now, book, probed=state.rule if probes else ""):
            return refused
    if probes:
        logged = replace(logged, probe=(call.mark, now))
    return logged, CallDecision(ALLOW, state.circuit_id)


def _refused(
    state: CircuitState, logged: CircuitState, call: CircuitCall, now: float, book: RuleBook, *, probed: str
) -> tuple[CircuitState, CallDecision] | None:
    """Refuse the call that is one too many; None where it may be made. `probed`: the rule that it is the probe of."""
    external = book["external_api"]
    if call.kind == "oracle":  # lopen's own: it waits for its turn
        window = _within(external, logged.calls.log, now)
        if external.trips(len(window)):
            free_at, full = window[0].at + external.window, "the window for external calls is full"
            return state, CallDecision(LATER, state.circuit_id, external.name, full, free_at)
    else:
        for rule in book.rules.values():
            count = _count(rule, logged, call, now)
            if rule.trips(count) and rule.name != probed:
                return tripped(state, rule, rule.described(call.tool, count), now, book)
    if external.enabled and logged.external_total > book.api_session_max:
        seen = f"{book.api_session_max} external calls were made in this session, which is all it may"
        return tripped(state, external, seen, now, book, ack=True)
    return None


def _logged(state: CircuitState, call: CircuitCall, now: float, book: RuleBook) -> CircuitState:
    """Log `call`, in its task. An oracle's call is lopen's own: it is of no task, and in no turn of the model."""
    calls = state.calls
    if call.kind != "oracle" and not call.inner:
        calls = calls.in_task(call.task)
    turn, subject = calls.turn(call.agent, call.turn), call.subject or call.tool
    entry = LoggedCall(call.mark, call.signature, call.kind, call.agent, turn, call.turn, now, subject)
    calls = calls.announced(entry, of_task=call.kind in TOOLS and call.of_task, kept=book.kept)
    total = state.external_total + (call.kind in ("external", "oracle"))
    return replace(state, calls=calls, external_total=total, last_updated=now)


def _count(rule: CircuitRule, state: CircuitState, call: CircuitCall, now: float) -> int:
    """Return the calls that the rule counts up to this one, which is logged; 0 where the rule is not about it."""
    if call.kind not in rule.kinds:
        return 0
    match rule.name:
        case "max_iterations":
            return state.calls.iteration_count if call.of_task and not call.verifies else 0
        case "duplicate_call":
            return state.identical_calls(call.agent)
        case "tool_failure":  # failures are counted when a call ends
            return 0
        case "sequential_tool":
            own = _in_turns(rule, state.calls.log, call.agent)
            return sum(each.subject == (call.subject or call.tool) for each in own)
        case _ if rule.unit == "seconds":
            return len(_within(rule, state.calls.log, now))
        case _:
            return len(_in_turns(rule, state.calls.log, call.agent))


def _within(rule: CircuitRule, log: Sequence[LoggedCall], now: float) -> list[LoggedCall]:
    """Return the calls in the last seconds that the rule counts; a clock that was set back leaves none."""
    return [c for c in log if c.kind in rule.kinds and not c.past and 0 <= now - c.at < rule.window]


def _in_turns(rule: CircuitRule, log: Sequence[LoggedCall], agent: str) -> list[LoggedCall]:
    """Return the calls in the latest turns of an agent that the rule counts."""
    own = [call for call in log if call.agent == agent and call.kind != "oracle"]
    recent = [call for call in own if own[-1].turn - call.turn < rule.window]
    return [call for call in recent if call.kind in rule.kinds and not call.past]


def after_call(
    state: CircuitState, end: CallEnd, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision | None]:
    """Count the end of a call; return the new state, and a decision where the end tripped the circuit."""
    calls = state.calls.ended(end)
    failed = is_failure(calls, end)
    calls = calls.changed(calls.call(end.mark), failed=failed, ends_row=end.progressed)
    state = replace(state, calls=calls)
    if not book.enabled:
        return state, None
    state = replace(state, last_updated=now)
    if state.state == "half_open" and state.probe is not None and state.probe[0] == end.mark:
        if not failed:
            return closed(state), None
        return tripped(
            state, book[state.rule], f"the probe after the cooldown failed ({end.tool})", now, book
        )
    if not failed or state.holds_all:
        return state, None
    return _failed(state, end, now, book)


def is_failure(calls: CallHistory, end: CallEnd) -> bool:
    """Tell whether a counted end is a failure: not `ok`, or the command failed again over an unchanged tree."""
    again = calls.failures_in_row(end.signature) > 1
    return not end.ok or (bool(end.exit_code) and bool(end.tree) and again)


def cut_off(state: CircuitState, mark: str, *, of_task: bool) -> CircuitState:
    """Take back a call that was cut off, with the external calls made inside it: it counts nowhere.

    `of_task`: it counted as an iteration of the task.
    """
    gone = [call for call in state.calls.log if call.mark == mark or call.mark.startswith(f"{mark}/")]
    external = sum(call.kind in ("external", "oracle") for call in gone)
    iterations = state.calls.iteration_count - (of_task and external < len(gone))
    left = tuple(call for call in state.calls.log if call not in gone)
    return replace(
        state,
        probe=None if state.probe is not None and state.probe[0] == mark else state.probe,
        calls=replace(state.calls, log=left, iteration_count=max(0, iterations)),
        external_total=max(0, state.external_total - external),
    )


def _failed(
    state: CircuitState, end: CallEnd, now: float, book: RuleBook
) -> tuple[CircuitState, CallDecision | None]:
    """Open the circuit where a tool failed too often within its turns, over one state of the work tree."""
    rule, calls = book["tool_failure"], state.calls
    recent = [
        call
        for call in _in_turns(rule, calls.log, end.agent)
        if call.failed and call.tree == calls.tree and call.tool == end.tool
    ]
    if not rule.trips(len(recent)):
        return state, None
    same = end.tool in RECORDS and len({call.signature for call in recent}) == 1
    seen = rule.described(end.tool, len(recent))
    return tripped(state, rule, f"{seen}{' with the same input' if same else ''}", now, book, ack=same)


def tripped(
    state: CircuitState, rule: CircuitRule, seen: str, now: float, book: RuleBook, *, ack: bool = False
) -> tuple[CircuitState, CallDecision]:
    """Open the circuit for `rule`; return the new state and the decision. `ack`: a person closes it."""
    after = opened(state, rule, seen, now, ack=ack)
    return after, replace(refusal(after, book), kind=TRIP)
