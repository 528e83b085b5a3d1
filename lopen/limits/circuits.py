"""Circuits: the table of rules, the state of a circuit, and the effects of a call and its end.

closed → open → half_open → closed. In half_open one probe is allowed: its success closes the circuit, its
failure opens it again with the next longer cooldown. The call that trips the circuit is not made. State is bounded: a
window holds one entry more than its threshold. Pure: `before_call` and `after_call` decide, and `call_counting` applies them to a store. `now` is in seconds since the epoch.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from lopen.guardrails.call_history import CallEnd, CallHistory
from lopen.limits.records import Alert, new_id
from lopen.settings.rule_numbers import RULE_NUMBERS

# the rules

UNVERIFIABLE = "say what is done and what is in the way"
HISTORY = 50  # ten turns of five calls
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

    def cooldown(self, trips_in_row: int) -> float:
        """Seconds to wait after the n-th trip in a row (from 1)."""
        return self.ladder[min(trips_in_row, len(self.ladder)) - 1] if self.ladder else 0.0

    def counted(self, window: tuple[float, ...], at: float) -> tuple[float, ...]:
        """Return the window with a call at this second or turn; a clock that was set back empties it."""
        kept = [each for each in window if 0 <= at - each < self.window]
        return (*kept, at)[-(self.threshold + 1) :]


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
        "{count} tool calls since {since}",
        "run the verification, or say in the task's note what is in the way",
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

    `history`: calls remembered for finding patterns. `verifiable`: there are verify commands, from the last passing
    one of which `max_iterations` counts.
    """

    rules: Mapping[str, CircuitRule] = field(default_factory=lambda: BY_NAME)
    api_session_max: int = 50
    enabled: bool = True
    history: int = HISTORY
    verifiable: bool = True

    def __getitem__(self, name: str) -> CircuitRule:
        return self.rules[name]


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
    history: int = HISTORY,
    verifiable: bool = True,
) -> RuleBook:
    """The book of the settings' `circuit` table. `exempt` rules never trip (a model on loopback, a replay)."""
    rules = {r.name: _configured(r, circuit.get(r.name) or {}) for r in RULES}
    rules |= {name: replace(rules[name], enabled=False) for name in exempt}
    if not verifiable:
        rules["max_iterations"] = replace(rules["max_iterations"], instead=UNVERIFIABLE)
    return RuleBook(rules, api_session_max, bool(circuit.get("enabled", True)), history, verifiable)


# a circuit

WHOLE_SESSION = "*"  # the task of a caller without tasks
AGENTS_KEPT = 32
MAIN = ""  # the main agent's name among the rows
OUTLIVES_COOLDOWN = ("external_api", "agent_spawn")  # windows that count on after it
ALLOW, TRIP, WAIT, ACK, LATER = "allow", "trip", "wait", "ack", "later"


@dataclass(frozen=True, slots=True)
class CircuitCall:
    """A call that is about to be made.

    `turn` is the caller's label of the turn: a new label is a new turn, and `head/7` is two turns after `head/5`.
    `kind`: "tool", "hook", "agent", "external" (a script that calls an outside model) or "oracle" (lopen's own such
    call). An oracle call waits for its turn and does not trip. `inner`: made inside an allowed call, by a sub-agent
    or the oracle; it belongs to that call's probe. `task` is "" where no verify command can end a count. `nonce`
    identifies this one call, where the caller has an id for it. `agent` is the sub-agent that makes the call, whose
    rows are counted apart. `verifies`: it runs a verify command.
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

    `windows` holds the seconds or turns of the calls that a rule counts; `rows` the counts of each agent.
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
        """Return the counts of an agent."""
        return self.rows.get(agent, AgentRow())

    def with_row(self, agent: str, row: AgentRow) -> CircuitState:
        """Keep the counts of an agent; of sub-agents the latest."""
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

    The counts of external calls and of sub-agents outlive a cooldown, and so does a row of identical calls. Only a
    person's acknowledgement begins them anew.
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


# a call

# Tools that record lopen's own state: waiting cannot mend an input that they refuse
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


# in words


def trip_text(decision: CallDecision, now: datetime, *, short: bool = False) -> str:
    """Why a call is held back: reason and workaround, then until when or the person's command.

    `short`: in two lines, and without the circuit's id, which the command finds where one circuit alone waits.
    """
    later = decision.kind == LATER
    reason = f"{'Resource limit reached' if later else 'Circuit breaker tripped'}: {decision.seen}."
    if decision.instead:
        reason += f" Instead: {decision.instead}."
    ways = []
    if decision.until is not None:
        wait = max(1, -int((now.timestamp() - decision.until) // 1))  # rounded up, as is the time of day
        until = datetime.fromtimestamp(-(-decision.until // 1), UTC).strftime("%H:%M:%S UTC")
        ways.append(f"Cooldown: {wait}s, until {until}{'' if later else '; then one call is let through'}.")
    if decision.rule == "agent_spawn":
        ways.append("SUDO PARALLEL in the person's prompt lifts the limits on sub-agents.")
    if decision.needs_ack:
        command = "lopen circuit ack" if short else f"lopen circuit ack {decision.circuit_id}"
        ways.append(f"A person lets it go on with: {command}")
    return ("\n" if short else " ").join([reason, " ".join(ways)] if ways else [reason])


def trip_alert(decision: CallDecision, now: datetime) -> Alert:
    """The alert for a circuit that only a person can close."""
    return Alert(new_id(), decision.circuit_id, "circuit_tripped", trip_text(decision, now), 0.0, now)
