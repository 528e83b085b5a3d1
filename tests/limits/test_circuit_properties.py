"""What holds of a circuit whatever is done with it."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lopen.limits.breaker import PROBE_LOST_S, after_call, before_call
from lopen.limits.circuit import Call, CircuitState, Outcome, acknowledged
from lopen.limits.records import dump, load
from lopen.limits.rules import HISTORY, RuleBook, rule_book

BOOK: RuleBook = rule_book({"max_iterations": {"threshold": 12}, "rapid_fire": {"threshold": 6}})
TOOLS = st.sampled_from(["read_file", "run_command", "edit_file"])


class Circuits(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = CircuitState("session:s")
        self.now = 0.0
        self.turn = 0
        self.under_way: list[Call] = []
        self.probes: list[Call] = []

    @rule(
        tool=TOOLS,
        argument=st.integers(0, 2),
        kind=st.sampled_from(["tool", "tool", "external", "agent", "hook"]),
    )
    def call(self, tool: str, argument: int, kind: str) -> None:
        call = Call(tool, f"{tool}:{argument}:{kind}", str(self.turn), kind)
        before = self.state
        self.state, decision = before_call(before, call, self.now, BOOK)
        if decision.allowed:
            if self.state.state == "half_open":
                assert not self.probes, "two probes at once"
                self.probes.append(call)
            self.under_way.append(call)
        else:
            assert decision.seen
            assert decision.until is not None or decision.needs_ack
        if self.state.state == "closed":
            assert before.state == "closed", "closed without a success"

    @rule(ok=st.booleans(), which=st.integers(0, 5))
    def end(self, ok: bool, which: int) -> None:
        if not self.under_way:
            return
        call = self.under_way.pop(which % len(self.under_way))
        before = self.state
        self.state, _ = after_call(before, Outcome(call.tool, call.signature, ok), self.now, BOOK)
        if before.state == "half_open" and self.state.state == "closed":
            assert ok
            assert call.signature == before.probe
            assert self.state.trips_in_row == 0
        if self.state.state != "half_open" or not self.state.probe:
            self.probes.clear()

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 30.0, 60.0, 300.0, PROBE_LOST_S + 1]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.now - self.state.probe_at > PROBE_LOST_S:
            self.probes.clear()

    @rule()
    def next_turn(self) -> None:
        self.turn += 1

    @rule()
    def acknowledge(self) -> None:
        self.state = acknowledged(self.state)

    @invariant()
    def stays_small_and_survives_storage(self) -> None:
        assert len(self.state.history) <= HISTORY
        assert max(len(self.state.times), len(self.state.external)) <= 11
        assert len(dump(self.state)) < 8_000
        assert load(CircuitState, dump(self.state)) == self.state

    @invariant()
    def an_open_circuit_says_why(self) -> None:
        if self.state.state == "open":
            assert self.state.rule
            assert self.state.trip_reason


Circuits.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestCircuits = Circuits.TestCase
