"""What the meter's gate holds back: calls, sub-agents, and when it lets them go on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lopen.core.events import GuardrailRaised
from lopen.guardrails.call_history import CallEnd
from lopen.limits import admin_actions
from lopen.limits.agents import read_agents
from lopen.limits.call_gate import ToolPass
from lopen.limits.circuits import CallDecision
from lopen.limits.meter import Meter
from lopen.limits.store import LimitsStore
from tests.fakes import FakeClock
from tests.limits.conftest import MakeMeter


def test_a_cooldown_says_until_when_and_is_over_then(make_meter: MakeMeter, clock: FakeClock) -> None:
    meter = make_meter()
    trip: CallDecision | None = None
    for turn in range(4):
        clock.advance(3)
        passed = meter.gate.before_tool("run_command", {"command": f"pytest {turn}"}, turn)
        assert isinstance(passed, ToolPass)
        trip, _ = meter.gate.after_tool(passed, CallEnd("run_command", "", False))
    assert trip is not None
    assert trip.until is not None
    assert "Cooldown: 5s" in trip.text(clock.now())
    line = trip.events(clock.now())[-1]
    assert isinstance(line, GuardrailRaised)
    assert (line.verdict, line.action) == ("warn", "holds calls for 5 s, then allows one")
    until = datetime(2026, 3, 1, 12, 0, 5, 300_000, UTC).timestamp()
    for left, said in (
        (2.3, "Cooldown: 3s, until 12:00:06 UTC"),
        (3.0, "Cooldown: 3s,"),
        (0.2, "Cooldown: 1s,"),
    ):
        told = CallDecision("wait", until=until).text(datetime.fromtimestamp(until - left, UTC))
        assert said in told, left
    clock.sleep(trip.until - clock.now().timestamp())
    probe = meter.gate.before_tool("read_file", {}, 9)
    assert isinstance(probe, ToolPass)
    assert meter.gate.after_tool(probe, CallEnd("ls", "")) == (None, ())
    circuit = meter.gate.circuit()
    assert circuit is not None
    assert circuit.state == "closed"


def work(meter: Meter, turns: range) -> None:
    """Make a call in each of these turns."""
    for turn in turns:
        assert isinstance(meter.gate.before_tool("read_file", {"path": str(turn)}, turn), ToolPass)


def test_six_agents_at_once_are_held_apart_and_the_oldest_makes_room(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter()
    assert isinstance(meter.gate.spawn_agent("a0", 0), ToolPass)
    hurried = meter.gate.spawn_agent("a1", 1)
    assert isinstance(hurried, CallDecision)
    assert hurried.until is not None
    assert hurried.until - clock.now().timestamp() == pytest.approx(10)
    for i in range(1, 5):
        clock.advance(10)
        work(meter, range(4 * i, 4 * i + 4))
        assert isinstance(meter.gate.spawn_agent(f"a{i}", 4 * i + 4), ToolPass)
    clock.advance(10)
    sixth = meter.gate.spawn_agent("a5", 30)
    assert isinstance(sixth, ToolPass)
    running = store.atomically(lambda rows: read_agents(rows, "session:s1")).running
    assert [name for name, _ in running] == ["a1", "a2", "a3", "a4", "a5"]


def test_what_a_probe_itself_asks_for_belongs_to_it(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter()
    for n in range(5):
        meter.gate.before_tool("read_file", {"path": "a"}, n)
    admin_actions.acknowledge_circuit(store, "session:s1", clock.now())
    probe = meter.gate.before_tool("verify_task_completion", {}, 6)
    assert isinstance(probe, ToolPass)
    assert isinstance(meter.gate.before_tool("read_file", {"path": "b"}, 6), CallDecision)
    asked = meter.gate.external_call(6)
    assert isinstance(asked, ToolPass)
    meter.gate.external_done(asked)
    assert isinstance(meter.gate.spawn_agent("a", 6), ToolPass)
    with meter.gate.inside("a"):
        assert isinstance(meter.gate.before_tool("read_file", {"path": "b"}, 6), ToolPass)
    assert (circuit := meter.gate.circuit())
    assert circuit.state == "half_open"
    meter.gate.after_tool(probe, CallEnd("ls", ""))
    assert (circuit := meter.gate.circuit())
    assert circuit.state == "closed"


def test_agents_of_a_dead_process_run_no_more(make_meter: MakeMeter, store: LimitsStore) -> None:
    make_meter().gate.spawn_agent("a", 1)
    make_meter().recover("s1")
    assert store.atomically(lambda rows: read_agents(rows, "session:s1")).running == ()


def test_the_plan_raises_the_sessions_external_calls(make_meter: MakeMeter, clock: FakeClock) -> None:
    meter = make_meter()
    meter.gate.plan_known(30)
    answers = []
    for turn in range(91):
        clock.advance(60)
        answers.append(meter.gate.external_call(turn))
    assert [isinstance(a, ToolPass) for a in answers] == [True] * 90 + [False]
