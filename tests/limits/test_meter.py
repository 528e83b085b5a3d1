"""The meter as the loop uses it: reserve, settle, abandon, recover, and what it says."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lopen.clock import FakeClock
from lopen.errors import ExitCode
from lopen.events import AlertRaised, CircuitChanged, Notice
from lopen.limits import orders
from lopen.limits.answers import BudgetReached, ToolPass, ToolTrip
from lopen.limits.guarding import read_agents
from lopen.limits.meter import Meter
from lopen.limits.owner import is_gone, this_process
from lopen.limits.specs import task_tokens
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import LimitsStore
from lopen.llm.messages import Usage
from lopen.settings.schema import Budget, Settings
from lopen.storage.database import Database
from tests.limits.conftest import MakeMeter


def spend(meter: Meter, tokens: int, cost: float | None = 0.0, agent: str = "") -> list[str]:
    grant = meter.reserve(0, tokens, agent)
    events = meter.settle(grant, Usage(output_tokens=tokens), cost, "opus")
    return [e.alert_type for e in events if isinstance(e, AlertRaised)]


def test_a_request_is_charged_to_module_session_and_task(make_meter: MakeMeter) -> None:
    meter = make_meter()
    grant = meter.reserve(2_000, 16_000)
    assert grant.max_tokens == 16_000
    assert [s.reserved for s in meter.states()] == [18_000] * 3
    meter.settle(grant, Usage(1_000, 500, 200, 3_000), 0.25, "opus")
    for state in meter.states():
        assert (state.tokens_used, state.reserved, state.cost_usd) == (2_000, 0, 0.25)
    assert meter.cost() == pytest.approx(0.25)


def test_the_answer_shrinks_to_what_is_left_and_then_the_session_pauses(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"task_tokens": 20_000})
    assert meter.reserve(2_000, 16_000).max_tokens == 16_000
    assert meter.reserve(500, 16_000).max_tokens == 1_500
    with pytest.raises(BudgetReached) as raised:
        meter.reserve(1, 16_000)
    assert raised.value.budget_id == "task:t1"
    assert raised.value.exit_code is ExitCode.PERSON_NEEDED
    assert raised.value.command.startswith("lopen budget extend task:t1 --tokens ")
    assert [e.alert_type for e in raised.value.events if isinstance(e, AlertRaised)] == ["budget_exhausted"]
    with pytest.raises(BudgetReached) as again:
        meter.reserve(1, 16_000)
    assert again.value.events == ()


def test_a_paused_budget_goes_on_after_an_extension(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter(budget={"task_tokens": 2_000})
    assert spend(meter, 2_000) == ["warning_threshold", "budget_exhausted"]
    with pytest.raises(BudgetReached):
        meter.reserve(1, 1_024)
    orders.extend_budget(store, "task:t1", 10_000, "it was too small", clock.now())
    assert meter.reserve(0, 16_000).max_tokens == 10_000


def test_a_failed_request_costs_nothing(make_meter: MakeMeter) -> None:
    meter = make_meter()
    meter.abandon(meter.reserve(2_000, 16_000))
    assert [(s.tokens_used, s.reserved) for s in meter.states()] == [(0, 0)] * 3


def test_settling_twice_charges_once(make_meter: MakeMeter) -> None:
    meter = make_meter()
    grant = meter.reserve(10, 2_000)
    for _ in range(2):
        meter.settle(grant, Usage(10, 90), 0.5, "opus")
    assert [s.tokens_used for s in meter.states()] == [100] * 3


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 20_000), st.floats(0.0, 1.05)), max_size=25))
def test_a_budget_is_never_overshot_by_more_than_the_estimates_error(
    tmp_path: Path, requests: list[tuple[int, int, float]]
) -> None:
    database = Database(tmp_path / "overshoot.db")
    store = SqliteStore(database)
    database.connection.execute("DELETE FROM budgets")
    meter = Meter(store, Settings.model_validate({"budget": {"task_tokens": 30_000}}), FakeClock())
    meter.open("s", "m", "t")
    worst = 0
    for estimate, wanted, share in requests:
        try:
            grant = meter.reserve(estimate, wanted)
        except BudgetReached:
            break
        assert grant.max_tokens >= min(1_024, wanted)
        real_input = int(estimate * share) if share > 1 else estimate  # an estimate may be 5% short
        worst += max(0, real_input - estimate)
        meter.settle(grant, Usage(real_input, int(grant.max_tokens * min(share, 1.0))), None)
        task = meter.states()[2]
        assert task.tokens_used <= 30_000 + worst
    database.close()


def test_module_requests_are_counted_and_limited(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"premium_request_budget": 5})
    said = [spend(meter, 10) for _ in range(5)]
    assert said == [[], [], [], ["warning_threshold"], ["confirmation", "budget_exhausted"]]
    with pytest.raises(BudgetReached) as raised:
        meter.reserve(1, 100)
    assert raised.value.budget_id == "module:m"


def test_a_confirmation_holds_until_an_extension(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter(budget={"token_budget_per_module": 10_000})
    assert spend(meter, 9_200) == ["warning_threshold", "confirmation"]
    assert not meter.states()[0].confirmed
    orders.confirm_budget(store, "module:m")
    assert meter.states()[0].confirmed
    orders.extend_budget(store, "module:m", 10_000, "more", clock.now())
    assert (meter.states()[0].announced, meter.states()[0].confirmed) == ((), False)


def test_budgets_that_are_off_count_but_never_stop(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"enabled": False, "task_tokens": 1_000})
    assert spend(meter, 900_000) == []
    assert meter.reserve(1, 16_000).max_tokens == 16_000
    assert meter.states()[2].tokens_used == 900_000


@pytest.mark.parametrize(
    ("task_type", "tables", "tokens"),
    [
        ("planning", {}, 50_000),
        ("implement", {}, 100_000),
        ("deploy", {}, 20_000),
        ("something else", {}, 100_000),
        ("implement", {"task_tokens": 40_000}, 40_000),
        ("implement", {"task_tokens": 40_000, "by_task_type": {"implement": 70_000}}, 70_000),
        ("review", {"by_task_type": {"review": 0}}, 0),
        ("model_fields", {}, 100_000),
    ],
)
def test_a_tasks_limit_follows_its_type(task_type: str, tables: dict[str, object], tokens: int) -> None:
    assert task_tokens(Budget.model_validate(tables), task_type) == tokens


def test_the_cost_limit_of_a_run_stops_it(store: LimitsStore, clock: FakeClock) -> None:
    meter = Meter(store, Settings(), clock, max_cost_usd=1.0)
    meter.open("s1", "m")
    spend(meter, 100, 0.7)
    spend(meter, 100, 0.4, "oracle")
    with pytest.raises(BudgetReached, match=r"\$1\.10 of the \$1\.00") as raised:
        meter.reserve(1, 100)
    assert raised.value.command == "lopen resume s1 --max-cost 2.1"


def test_the_cost_limit_shortens_an_answer_to_what_it_pays_for(store: LimitsStore, clock: FakeClock) -> None:
    def quote(answer: int) -> float:
        return 0.10 + answer / 10_000

    meter = Meter(store, Settings(), clock, max_cost_usd=1.0)
    meter.open("s1", "m")
    assert meter.reserve(1, 9_000, "", quote).max_tokens == 9_000
    assert meter.reserve(1, 16_000, "", quote).max_tokens == 9_000
    spend(meter, 100, 0.6)
    assert meter.reserve(1, 16_000, "", quote).max_tokens == 3_000
    spend(meter, 100, 0.2)
    with pytest.raises(
        BudgetReached, match=r"\$0\.80 of the \$1\.00 it may, and another .* \$1\.70"
    ) as raised:
        meter.reserve(1, 16_000, "", quote)
    assert raised.value.command == "lopen resume s1 --max-cost 2.5"
    assert meter.reserve(1, 16_000).max_tokens == 16_000  # without a known price


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.floats(0, 0.3), st.integers(1, 20_000), st.floats(0, 1)), max_size=25))
def test_the_cost_limit_is_never_overshot_where_quotes_are_right(
    tmp_path: Path, requests: list[tuple[float, int, float]]
) -> None:
    database = Database(tmp_path / "cost.db")
    database.connection.execute("DELETE FROM budgets")
    database.connection.execute("PRAGMA synchronous=OFF")
    meter = Meter(SqliteStore(database), Settings(), FakeClock(), max_cost_usd=1.0)
    meter.open("s", "m")
    for head, wanted, share in requests:

        def quote(answer: int, head: float = head) -> float:
            return head + answer * 25e-6

        with contextlib.suppress(BudgetReached):
            grant = meter.reserve(0, wanted, "", quote)
            meter.settle(grant, Usage(output_tokens=1), quote(int(grant.max_tokens * share)))
    assert meter.cost() <= 1.0 + 1e-9
    database.close()


def test_what_a_crash_left_unsettled_has_its_cost_too(make_meter: MakeMeter) -> None:
    meter = make_meter()
    meter.reserve(1_000, 2_000, "oracle", lambda answer: answer / 1_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lopen.limits.meter.is_gone", lambda owner: True)
        told = meter.recover("s1")
    assert meter.cost() == pytest.approx(2.0)
    assert [e.alert_type for e in told if isinstance(e, AlertRaised)] == ["warning_threshold"]


def test_external_calls_warn_at_one_dollar_and_block_at_five_until_acknowledged(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter()
    assert spend(meter, 10, 4.0) == []  # the session's own work does not count here
    assert spend(meter, 10, 0.6, "oracle") == []
    assert spend(meter, 10, 0.6, "research") == ["warning_threshold"]
    assert spend(meter, 10, 3.0, "research") == []
    assert isinstance(meter.gate.external_call(1), ToolPass)
    spend(meter, 10, 1.0, "oracle")
    stopped = meter.gate.external_call(2)
    assert isinstance(stopped, ToolTrip)
    assert stopped.command == "lopen circuit ack session:s1"
    orders.acknowledge_circuit(store, "session:s1", clock.now())
    assert isinstance(meter.gate.external_call(3), ToolPass)


def test_a_limit_on_cost_that_does_not_hold_for_a_model_is_said_once(
    store: LimitsStore, clock: FakeClock
) -> None:
    meter = Meter(store, Settings(), clock, max_cost_usd=1.0)
    meter.open("s1", "m", "t1")
    assert meter.reserve(10, 2_000, "builder", lambda answer: 0.1).events == ()
    [said] = meter.reserve(10, 2_000, "builder").events
    assert isinstance(said, Notice)
    assert "no price is known for the builder's model: the limit on cost ($1.00)" in said.message
    assert meter.reserve(10, 2_000, "oracle").events == ()
    other = Meter(store, Settings(), clock)
    other.open("s2", "m", "t1")
    assert other.reserve(10, 2_000, "builder").events == ()
    [said] = other.reserve(10, 2_000, "oracle").events
    assert isinstance(said, Notice)
    assert "resources.cost_block_usd ($5.00)" in said.message


def test_unknown_models_count_in_tokens_and_are_said(make_meter: MakeMeter) -> None:
    meter = make_meter()
    spend(meter, 500, None)
    assert [(s.unpriced_tokens, s.cost_usd) for s in meter.states()] == [(500, 0.0)] * 3


CRASH = """
import os, sys
from pathlib import Path
from lopen.clock import SystemClock
from lopen.limits.meter import Meter
from lopen.limits.redis_store import RedisStore
from lopen.limits.sqlite_store import SqliteStore
from lopen.settings.schema import Settings
from lopen.storage.database import Database
where, prefix = sys.argv[1:]
store = RedisStore(where, prefix=prefix) if where.startswith("redis") else SqliteStore(Database(Path(where)))
meter = Meter(store, Settings(), SystemClock())
meter.open("s1", "m", "t1")
meter.reserve(3_000, 16_000)
os._exit(9)
"""


def test_what_a_crash_left_unsettled_counts_as_spent_once(
    make_meter: MakeMeter, store: LimitsStore, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where, prefix = str(tmp_path / "state.db"), ""
    if not isinstance(store, SqliteStore):
        where, prefix = request.getfixturevalue("shared_redis").url, store._key.prefix  # type: ignore[attr-defined] # the fixture's own
    crashed = subprocess.run([sys.executable, "-c", CRASH, where, prefix], check=False, timeout=30)
    assert crashed.returncode == 9
    meter = make_meter()
    assert [s.reserved for s in meter.states()] == [19_000] * 3
    own = meter.reserve(10, 2_000)
    for _ in range(2):
        meter.recover("s1")
        assert [(s.tokens_used, s.reserved) for s in meter.states()] == [(19_000, 2_010)] * 3
    meter.abandon(own)


def test_a_new_session_settles_what_a_dead_one_of_its_module_left(
    store: LimitsStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.model_validate({"budget": {"token_budget_per_module": 100_000}})

    def opened(session: str, module: str) -> Meter:
        meter = Meter(store, settings, clock)
        meter.open(session, module, f"{session}-t1")
        return meter

    with monkeypatch.context() as patch:
        patch.setattr("lopen.limits.meter.this_process", lambda: "elsewhere/1/1")
        opened("m-1", "m").reserve(70_000, 16_000)
        opened("other-1", "other").reserve(5_000, 2_000)
    living = opened("m-2", "m").reserve(1_000, 2_000)
    new = opened("m-3", "m")
    with pytest.raises(BudgetReached, match="89,000 more reserved"):
        new.reserve(20_000, 16_000)

    new.recover("m-3")
    new.recover("m-3")

    found = {s.budget_id: (s.tokens_used, s.reserved) for s in store.budgets()}
    assert found["module:m"] == (86_000, 3_000)
    assert found["session:m-1"] == (86_000, 0)
    assert found["module:other"] == (0, 7_000)
    new.abandon(living)
    assert store.atomically(lambda rows: [r.session for r in rows.promised()]) == ["other-1"]


def test_a_process_is_known_to_be_gone_only_when_it_is() -> None:
    assert not is_gone(this_process())
    host, pid, started = this_process().split("/")
    assert is_gone(f"{host}/{pid}/{int(started or 0) + 1}") == bool(started)
    assert is_gone(f"{host}/4194305/1")
    assert is_gone(f"elsewhere/{pid}/1")
    assert is_gone("rubbish")


def test_calls_are_stopped_and_said_with_what_to_do(make_meter: MakeMeter, clock: FakeClock) -> None:
    meter = make_meter()
    for turn in range(4):
        clock.advance(5)
        assert isinstance(meter.gate.before_tool("read_file", {"path": "./a"}, turn), ToolPass)
    trip = meter.gate.before_tool("read_file", {"path": "a"}, 9)
    assert isinstance(trip, ToolTrip)
    assert (trip.needs_ack, trip.until, trip.command) == (True, None, "lopen circuit ack session:s1")
    for said in ("read_file was called 5 times in a row", "Instead:", "lopen circuit ack session:s1"):
        assert said in trip.text
    assert [type(e) for e in trip.events] == [CircuitChanged, AlertRaised]
    again = meter.gate.before_tool("read_file", {"path": "b"}, 10)
    assert isinstance(again, ToolTrip)
    assert again.events == ()


def test_a_cooldown_says_until_when_and_is_over_then(make_meter: MakeMeter, clock: FakeClock) -> None:
    meter = make_meter()
    trip: ToolTrip | None = None
    for turn in range(4):
        clock.advance(3)
        passed = meter.gate.before_tool("run_command", {"command": f"pytest {turn}"}, turn)
        assert isinstance(passed, ToolPass)
        trip = meter.gate.after_tool(passed, False)
    assert trip is not None
    assert trip.until is not None
    assert "Cooldown: 5s" in trip.text
    clock.sleep((trip.until - clock.now()).total_seconds())
    probe = meter.gate.before_tool("read_file", {}, 9)
    assert isinstance(probe, ToolPass)
    assert meter.gate.after_tool(probe, True) is None
    circuit = meter.gate.circuit()
    assert circuit is not None
    assert circuit.state == "closed"


def test_six_agents_at_once_are_held_apart_and_the_oldest_makes_room(
    make_meter: MakeMeter, clock: FakeClock
) -> None:
    meter = make_meter()
    assert isinstance(meter.gate.spawn_agent("a0", 0), ToolPass)
    hurried = meter.gate.spawn_agent("a1", 1)
    assert isinstance(hurried, ToolTrip)
    assert hurried.until is not None
    assert (hurried.until - clock.now()).total_seconds() == pytest.approx(10)
    for i in range(1, 5):
        clock.advance(10)
        passed = meter.gate.spawn_agent(f"a{i}", 5 * i)
        assert isinstance(passed, ToolPass)
        assert passed.ended == ""
    clock.advance(10)
    sixth = meter.gate.spawn_agent("a5", 30)
    assert isinstance(sixth, ToolPass)
    assert sixth.ended == "a0"


def test_six_agents_within_ten_turns_trip_the_circuit(make_meter: MakeMeter, clock: FakeClock) -> None:
    meter = make_meter()
    answers = []
    for i in range(6):
        clock.advance(10)
        answers.append(meter.gate.spawn_agent(f"a{i}", i))
        meter.gate.agent_done(f"a{i}")
    assert [isinstance(a, ToolPass) for a in answers] == [True] * 5 + [False]
    assert isinstance(answers[-1], ToolTrip)
    assert answers[-1].rule == "agent_spawn"


def test_a_session_starts_ten_agents_then_asks_a_person(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter()
    for i in range(10):
        clock.advance(60)
        assert isinstance(meter.gate.spawn_agent(f"a{i}", 10 * i), ToolPass)
        meter.gate.agent_done(f"a{i}")
    clock.advance(60)
    for _ in range(2):
        answer = meter.gate.spawn_agent("a10", 200)
        assert isinstance(answer, ToolTrip)
        assert answer.needs_ack
    assert len(store.incidents("session:s1")) == 1
    orders.acknowledge_circuit(store, "session:s1", clock.now())
    assert isinstance(meter.gate.spawn_agent("a10", 210), ToolPass)


def test_sudo_parallel_lifts_the_spawn_limits_and_is_logged(
    make_meter: MakeMeter, store: LimitsStore
) -> None:
    meter = make_meter()
    assert meter.gate.lift_spawn_limits("please be quick") == ()
    [notice] = meter.gate.lift_spawn_limits("build it, SUDO PARALLEL")
    assert "SUDO PARALLEL" in str(notice)
    assert all(isinstance(meter.gate.spawn_agent(f"a{i}", 1), ToolPass) for i in range(20))
    assert store.incidents("session:s1")[-1].rule == "override"


def test_what_a_probe_itself_asks_for_belongs_to_it(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    meter = make_meter()
    for n in range(5):
        meter.gate.before_tool("read_file", {"path": "a"}, n)
    orders.acknowledge_circuit(store, "session:s1", clock.now())
    probe = meter.gate.before_tool("verify_task_completion", {}, 6)
    assert isinstance(probe, ToolPass)
    assert isinstance(meter.gate.before_tool("read_file", {"path": "b"}, 6), ToolTrip)
    asked = meter.gate.external_call(6)
    assert isinstance(asked, ToolPass)
    meter.gate.external_done(asked, True)
    assert isinstance(meter.gate.spawn_agent("a", 6), ToolPass)
    with meter.gate.inside("a"):
        assert isinstance(meter.gate.before_tool("read_file", {"path": "b"}, 6), ToolPass)
    assert (circuit := meter.gate.circuit())
    assert circuit.state == "half_open"
    meter.gate.after_tool(probe, True)
    assert (circuit := meter.gate.circuit())
    assert circuit.state == "closed"


def test_agents_of_a_dead_process_run_no_more(make_meter: MakeMeter, store: LimitsStore) -> None:
    make_meter().gate.spawn_agent("a", 1)
    make_meter().recover("s1")
    assert store.atomically(lambda rows: read_agents(rows, "session:s1")).running == ()


def test_a_pause_is_announced_once_over_processes_and_its_command_is_enough(
    make_meter: MakeMeter, store: LimitsStore, clock: FakeClock
) -> None:
    limits = {"task_tokens": 20_000, "session_tokens": 0}
    spend(make_meter(budget=limits), 15_000)
    for events in (1, 0, 0):
        with pytest.raises(BudgetReached) as raised:
            make_meter(budget=limits).reserve(4_500, 16_000)
        assert len(raised.value.events) == events
    assert [a.alert_type for a in store.alerts("task:t1")] == ["budget_exhausted"]
    words = raised.value.command.split()
    assert words[:5] == ["lopen", "budget", "extend", "task:t1", "--tokens"]
    orders.extend_budget(store, "task:t1", int(words[5]), "needed", clock.now())
    assert make_meter(budget=limits).reserve(4_500, 16_000).max_tokens == 16_000


def test_the_plan_raises_the_sessions_external_calls(make_meter: MakeMeter, clock: FakeClock) -> None:
    meter = make_meter()
    meter.gate.plan_known(30)
    answers = []
    for turn in range(91):
        clock.advance(60)
        answers.append(meter.gate.external_call(turn))
    assert [isinstance(a, ToolPass) for a in answers] == [True] * 90 + [False]


def test_the_snapshot_is_one_line_and_guides_near_a_limit(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"session_tokens": 10_000, "task_tokens": 0})
    spend(meter, 900)
    line = meter.snapshot()
    assert "\n" not in line
    assert "session 900/10,000 (9%)" in line
    assert "circuits closed (0/50" in line
    assert "wrap up" not in line
    spend(meter, 7_200)
    assert "wrap up" in meter.snapshot()
