"""What every store keeps, on SQLite and on a real Redis."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lopen.core.errors import LopenError
from lopen.limits import admin_actions
from lopen.limits.agents import AgentLimits
from lopen.limits.budget import BudgetSpec, Charge, opened
from lopen.limits.call_gate import announce_call
from lopen.limits.charging import settle
from lopen.limits.circuits import CircuitCall, RuleBook
from lopen.limits.records import Alert, Incident, Reservation
from lopen.limits.store import LimitsStore, Rows
from lopen.models.messages import Usage
from tests.limits.conftest import charged
from tests.limits.redis_server import RedisServer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = BudgetSpec("session:s", "session", 100, agent="builder", task_description="a: 'b' \x1b[1m ü\n")
USAGE = Usage(10, 5, 3, 20)


def test_a_budget_comes_back_as_it_was_put(store: LimitsStore) -> None:
    charged(
        store, [SPEC, replace(SPEC, budget_id="module:m")], Charge(30, USAGE, 1, 0.25, "builder", "opus"), NOW
    )
    charged(store, [SPEC], Charge(20, USAGE, 1, None, "builder", "strange"), NOW)
    module, session = store.budgets()
    assert (session.tokens_used, session.requests_used, session.unpriced_tokens) == (50, 2, 20)
    assert session.cost_usd == pytest.approx(0.25)
    assert (session.started_at, session.spec.task_description) == (NOW, SPEC.task_description)
    assert module.tokens_used == 30
    spends = sorted(store.spend("session:s"), key=lambda s: s.model)
    assert [(s.model, s.usage, s.tokens, s.unpriced_tokens) for s in spends] == [
        ("opus", USAGE, 30, 0),
        ("strange", USAGE, 20, 20),
    ]


def test_crossings_come_once_also_over_separate_records(store: LimitsStore) -> None:
    said = [a.alert_type for t in (50, 30, 15, 10, 10) for a in charged(store, [SPEC], Charge(t), NOW)]
    assert said == ["warning_threshold", "budget_exhausted"]
    assert [a.alert_type for a in store.alerts()] == said


def test_work_that_raises_leaves_nothing_behind(store: LimitsStore) -> None:
    charged(store, [SPEC], Charge(10), NOW)

    def work(rows: Rows) -> None:
        state = rows.budget("session:s")
        assert state is not None
        rows.put_budget(replace(state, tokens_used=99))
        rows.put_memo("m", {"x": 1})
        raise LopenError("no")

    with pytest.raises(LopenError, match="no"):
        store.atomically(work)
    assert store.budgets()[0].tokens_used == 10
    assert store.atomically(lambda rows: rows.memo("m")) is None


def test_a_bug_of_lopens_own_is_no_outage(store: LimitsStore) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        store.atomically(lambda rows: int("a bug"))


def test_work_sees_what_it_wrote(store: LimitsStore) -> None:
    def work(rows: Rows) -> tuple[int, int, object]:
        state = rows.budget("session:s")
        assert state is None
        rows.put_budget(replace(opened(SPEC, NOW), tokens_used=7))
        again = rows.budget("session:s")
        assert again is not None
        rows.put_budget(replace(again, tokens_used=9))
        rows.put_reservation(Reservation("r", "s", "o", ("session:s",), 5))
        found = len(rows.reservations())
        rows.drop_reservation("r")
        rows.put_memo("k", {"a": [1]})
        return found, len(rows.reservations()), rows.memo("k")

    assert store.atomically(work) == (1, 0, {"a": [1]})
    assert store.budgets()[0].tokens_used == 9


def test_a_promise_is_settled_once_whoever_was_cut_off_in_between(store: LimitsStore) -> None:
    specs = [BudgetSpec("session:s", "session", 100_000), BudgetSpec("task:t", "task", 50_000)]
    promised = Reservation("r1", "s", "here", ("session:s", "task:t"), 300)
    charged(store, specs, Charge(1), NOW)

    def promise(rows: Rows) -> None:
        for spec in specs:
            state = rows.budget(spec.budget_id)
            assert state
            rows.put_budget(replace(state, reserved=500, requests_reserved=1))
        rows.put_reservation(promised)

    store.atomically(promise)
    charge = Charge(40, Usage(output_tokens=40), 1, 0.25, "builder", "opus")

    def settled(promise: Reservation, *, sure: bool = True) -> list[tuple[int, int, int]]:
        limits = AgentLimits()
        store.atomically(lambda rows: settle(rows, specs, charge, NOW, promise, limits, sure=sure))
        return [(s.tokens_used, s.reserved, s.requests_reserved) for s in store.budgets()]

    assert settled(promised) == [(41, 200, 0)] * 2
    assert settled(promised) == [(41, 200, 0)] * 2
    assert settled(replace(promised, reservation_id="never made"), sure=False) == [(81, 200, 0)] * 2
    assert [s.cost_usd for s in store.budgets()] == [0.5] * 2
    [spend] = store.spend("task:t")[-1:]
    assert (spend.tokens, spend.usage.output_tokens) == (80, 80)


def keep(store: LimitsStore, kept: Alert | Incident) -> None:
    store.atomically(
        lambda rows: rows.add_alert(kept) if isinstance(kept, Alert) else rows.add_incident(kept)
    )


def announce(store: LimitsStore, call: CircuitCall, now: datetime) -> bool:
    decision = store.atomically(lambda rows: announce_call(rows, "session:s", call, now, RuleBook()))
    return decision.allowed


def test_alerts_are_listed_and_acknowledged(store: LimitsStore) -> None:
    for i, budget_id in enumerate(["session:a", "session:a", "session:b"]):
        alert = Alert(f"id{i}", budget_id, "secret", "found", timestamp=NOW + timedelta(seconds=i))
        keep(store, alert)
    admin_actions.acknowledge_alert(store, "id1")
    assert [a.alert_id for a in store.alerts()] == ["id0", "id1", "id2"]
    assert [a.alert_id for a in store.alerts("session:a", False)] == ["id0"]
    assert [a.alert_id for a in store.alerts(acknowledged=True)] == ["id1"]
    with pytest.raises(LopenError, match="no alert"):
        admin_actions.acknowledge_alert(store, "id9")


def test_a_tripped_circuit_is_logged_acknowledged_and_reset(store: LimitsStore) -> None:
    def call(number: int) -> bool:
        return announce(store, CircuitCall("t", "same", str(number)), NOW + timedelta(seconds=20 * number))

    assert [call(i) for i in range(6)] == [True] * 4 + [False] * 2
    [incident] = store.incidents()
    assert (incident.rule, incident.needs_ack) == ("duplicate_call", True)
    [alert] = store.alerts()
    assert alert.message == "t was called 5 times in a row with the same arguments"
    assert admin_actions.acknowledge_circuit(store, "session:s", NOW).state == "half_open"
    assert call(7)
    assert not call(8)  # beside the probe
    assert admin_actions.reset_circuit(store, "session:s", NOW).state == "closed"
    assert call(9)
    [state] = store.circuits()
    assert [call.signature for call in state.calls.log] == ["same"]
    with pytest.raises(admin_actions.NoSuch):
        admin_actions.acknowledge_circuit(store, "session:unknown", NOW)


def test_the_history_and_the_incidents_are_bounded(store: LimitsStore) -> None:
    for i in range(120):
        keep(store, Incident("session:s", "x", str(i), NOW))
    for i in range(0, 900, 15):
        call = CircuitCall(f"t{i % 2}", f"t{i}", str(i), task=str(i // 450))
        now = NOW + timedelta(seconds=i)
        announce(store, call, now)
    [state] = store.circuits()
    assert [call.signature for call in state.calls.log] == [f"t{i}" for i in range(150, 900, 15)]
    assert [i.seen for i in store.incidents("session:s")] == [str(i) for i in range(20, 120)]


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest) -> str:
    """The store in which four processes count."""
    if request.param == "sqlite":
        return "sqlite"
    server: RedisServer = request.getfixturevalue("own_redis")
    return server.url


def test_four_processes_count_exactly_and_announce_each_threshold_once(place: str, tmp_path: Path) -> None:
    from tests.limits.counting import opened as open_store

    command = [sys.executable, "-m", "tests.limits.counting", place, str(tmp_path / "counted.db"), "100"]
    counters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [line for counter in counters for line in counter.communicate(timeout=60)[0].split()]
    assert [counter.returncode for counter in counters] == [0] * 4
    store = open_store(place, tmp_path / "counted.db")
    [state] = store.budgets()
    store.close()
    assert state.tokens_used == 400
    assert state.status == "paused"
    assert sorted(said) == ["budget_exhausted", "warning_threshold"]
