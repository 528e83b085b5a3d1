"""What holds of a circuit whatever is done with it."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lopen.guardrails.call_history import CALLS_KEPT, CallEnd
from lopen.limits.circuits import (
    PROBE_LOST_S,
    TRIP,
    CircuitCall,
    CircuitState,
    RuleBook,
    after_call,
    before_call,
    half_open,
    rule_book,
    verified,
)
from lopen.limits.records import dump, load

# Low, so that sixty steps meet every rule, and go on after it.
LOW = {
    "max_iterations": 7,
    "duplicate_call": 4,
    "rapid_fire": 5,
    "tool_failure": 1,
    "sequential_tool": 4,
    "hook_recursion": 2,
    "agent_spawn": 2,
    "external_api": 3,
}
BOOK: RuleBook = rule_book({name: {"threshold": most} for name, most in LOW.items()})
TOOLS = st.sampled_from(["read_file", "run_command"])
KINDS = st.sampled_from(["tool", "tool", "external", "agent", "hook"])


class Circuits(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = CircuitState("session:s")
        self.now = 0.0
        self.turn = 0
        self.made = 0
        self.under_way: list[CircuitCall] = []
        self.probe: CircuitCall | None = None

    @rule(tool=TOOLS, argument=st.integers(0, 1), kind=KINDS, task=st.booleans(), inner=st.booleans())
    def call(self, tool: str, argument: int, kind: str, task: bool, inner: bool) -> None:
        self.made += 1
        call = CircuitCall(
            tool,
            f"{tool}:{argument}:{kind}",
            str(self.turn),
            kind,
            "t" if task else "",
            inner,
            f"{self.made}",
        )
        before = self.state
        self.state, decision = before_call(before, call, self.now, BOOK)
        if before.probe is not None and self.now - before.probe[1] > PROBE_LOST_S:
            self.probe = None
        if decision.allowed:
            self._allowed(call)
        else:
            assert decision.seen
            assert decision.until is not None or decision.needs_ack
        if decision.kind == TRIP:
            self.probe = None  # a call inside the probe tripped the circuit
        if self.state.state == "closed":
            assert before.state == "closed", "closed without a success"

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 5))
    def call_again(self, which: int) -> None:
        """What is still under way, once more: only the mark tells one from the other."""
        earlier = self.under_way[which % len(self.under_way)]
        argument = int(earlier.signature.split(":")[1])
        self.call(earlier.tool, argument, earlier.kind, bool(earlier.task), inner=False)

    @precondition(lambda self: self.state.probe)
    @rule(ok=st.booleans())
    def oldest_ends(self, ok: bool) -> None:
        self.end(ok, 0, passed_verify=False)

    def _allowed(self, call: CircuitCall) -> None:
        held = self.state.holds(call)
        if held and not call.inner:
            assert self.probe is None, "two probes at once"
        if held and self.probe is None:
            self.probe = call
        self.under_way.append(call)

    @rule(ok=st.booleans(), which=st.integers(0, 5), passed_verify=st.booleans())
    def end(self, ok: bool, which: int, passed_verify: bool) -> None:
        if not self.under_way:
            return
        call = self.under_way.pop(which % len(self.under_way))
        before = self.state
        outcome = CallEnd(call.tool, call.signature, ok, nonce=call.nonce)
        self.state, _ = after_call(before, outcome, self.now, BOOK)
        if before.state == "half_open" and self.state.state == "closed":
            assert ok
            assert call is self.probe, "closed by another call than the probe"
            assert self.state.trips_in_row == 0
        if before.state == "closed" and call is not self.probe and ok:
            assert self.state.state == "closed"
        if passed_verify and ok:
            self.state = verified(self.state)
        if self.state.state != "half_open" or not self.state.probe:
            self.probe = None

    @rule(seconds=st.sampled_from([0.1, 4.0, 5.0, 6.0, 30.0, 60.0, PROBE_LOST_S + 1]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def next_turn(self) -> None:
        self.turn += 1

    @precondition(lambda self: self.state.tripped)
    @rule()
    def acknowledge(self) -> None:
        self.state = half_open(self.state) if self.state.tripped else self.state

    @invariant()
    def stays_small_and_survives_storage(self) -> None:
        assert len(self.state.calls.log) <= 4 * CALLS_KEPT
        assert len(dump(self.state)) < 200 * len(self.state.calls.log) + 1_000
        assert load(CircuitState, dump(self.state)) == self.state

    @invariant()
    def an_open_circuit_says_why(self) -> None:
        if self.state.state == "open":
            assert self.state.rule
            assert self.state.trip_reason


Circuits.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
TestCircuits = Circuits.TestCase
