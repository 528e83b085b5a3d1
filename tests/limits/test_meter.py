"""The meter as the loop uses it: tokens reserved, settled, abandoned, recovered after a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lopen.core.errors import ExitCode
from lopen.core.events import AlertRaised
from lopen.core.process_identity import is_gone, this_process
from lopen.limits import admin_actions
from lopen.limits.budget import task_tokens
from lopen.limits.meter import BudgetReached, Meter
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import LimitsStore
from lopen.models.messages import Usage
from lopen.settings.schema import Budget, Settings
from lopen.store.database import Database
from tests.fakes import FakeClock
from tests.limits.conftest import MakeMeter, spend


def test_judging_is_charged_to_module_and_session_and_never_held_by_the_task(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"task_tokens": 2_000})
    spend(meter, 2_000)
    grant = meter.reserve(1_000, 4_000, "oracle")
    meter.settle(grant, Usage(1_000, 500), 0.25, "haiku")
    assert [s.tokens_used for s in meter.states()] == [3_500, 3_500, 2_000]


def test_the_answer_shrinks_to_what_is_left_and_then_the_session_pauses(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"task_tokens": 20_000})
    assert meter.reserve(2_000, 16_000).max_tokens == 16_000
    assert meter.reserve(500, 16_000).max_tokens == 1_500
    with pytest.raises(BudgetReached) as raised:
        meter.reserve(1, 16_000)
    assert "task:t1" in raised.value.message
    assert raised.value.exit_code is ExitCode.PERSON_NEEDED
    assert raised.value.command.startswith("lopen budget extend task:t1 --tokens ")
    assert [e.alert_type for e in raised.value.events if isinstance(e, AlertRaised)] == ["budget_exhausted"]
    with pytest.raises(BudgetReached) as again:
        meter.reserve(1, 16_000)
    assert again.value.events == ()


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
    assert "module:m" in raised.value.message


def test_budgets_that_are_off_count_but_never_stop(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"enabled": False, "task_tokens": 1_000})
    assert spend(meter, 900_000) == []
    assert meter.reserve(1, 16_000).max_tokens == 16_000
    assert meter.states()[2].tokens_used == 900_000


@pytest.mark.parametrize(
    ("task_type", "tables", "tokens"),
    [
        ("planning", {}, 200_000),
        ("implement", {}, 400_000),
        ("deploy", {}, 80_000),
        ("something else", {}, 400_000),
        ("implement", {"task_tokens": 40_000}, 40_000),
        ("implement", {"task_tokens": 40_000, "by_task_type": {"implement": 70_000}}, 70_000),
        ("review", {"by_task_type": {"review": 0}}, 0),
        ("model_fields", {}, 400_000),
    ],
)
def test_a_tasks_limit_follows_its_type(task_type: str, tables: dict[str, object], tokens: int) -> None:
    assert task_tokens(Budget.model_validate(tables), task_type) == tokens


CRASH = """
import os, sys
from pathlib import Path
from lopen.core.clock import SystemClock
from lopen.limits.meter import BudgetReached, Meter
from lopen.limits.redis_store import RedisStore
from lopen.limits.sqlite_store import SqliteStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from lopen.store.database import Database
kept, where, prefix = sys.argv[1:]
database = Database(Path(kept))
store = RedisStore(where, database, prefix=prefix) if where else SqliteStore(database)
meter = Meter(store, Settings(), SystemClock())
meter.open("s1", "m", "t1")
grant = meter.reserve(3_000, 16_000)
meter.streamed(grant, Usage(input_tokens=2_800, output_tokens=700), 0.5)
os._exit(9)
"""


def test_what_a_crash_left_unsettled_counts_as_spent_once(
    make_meter: MakeMeter, store: LimitsStore, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where, prefix = "", ""
    if not isinstance(store, SqliteStore):
        where, prefix = request.getfixturevalue("shared_redis").url, store._prefix  # type: ignore[attr-defined] # the fixture's own
    crashed = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path / "state.db"), where, prefix], check=False, timeout=120
    )
    assert crashed.returncode == 9
    meter = make_meter()
    assert [s.reserved for s in meter.states()] == [19_000] * 3
    own = meter.reserve(10, 2_000)
    for _ in range(2):
        meter.recover("s1")
        found = [(s.tokens_used, s.reserved) for s in meter.states()]
        assert found == [(3_500, 2_010), (3_500, 2_010), (0, 2_010)], "an estimate uses up no task"
        assert [s.estimated_tokens for s in meter.states()] == [3_500, 3_500, 0]
        assert meter.cost() == 0.5
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
    assert found["module:m"] == (70_000, 3_000)  # its input: nothing had come of the answer
    assert found["session:m-1"] == (70_000, 0)
    assert found["module:other"] == (0, 7_000)
    new.abandon(living)
    assert store.atomically(lambda rows: [r.session for r in rows.reservations()]) == ["other-1"]


def test_a_process_is_known_to_be_gone_only_when_it_is() -> None:
    assert not is_gone(this_process())
    host, pid, started = this_process().split("/")
    assert is_gone(f"{host}/{pid}/{int(started or 0) + 1}") == bool(started)
    assert is_gone(f"{host}/4194305/1")
    assert is_gone(f"elsewhere/{pid}/1")
    assert is_gone("rubbish")
    assert is_gone(f"{host}/²/1")
    assert is_gone(f"{host}/{'9' * 5_000}/1")
    assert not is_gone(f"{host}/{pid}/²")


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
    admin_actions.extend_budget(store, "task:t1", int(words[5]), "needed", clock.now())
    assert make_meter(budget=limits).reserve(4_500, 16_000).max_tokens == 16_000


def test_the_snapshot_is_empty_until_a_limit_is_near_and_one_line_then(make_meter: MakeMeter) -> None:
    meter = make_meter(budget={"session_tokens": 10_000, "task_tokens": 0})
    spend(meter, 900)
    assert meter.snapshot(near_only=True) == ""
    assert "wrap up" not in meter.snapshot()
    spend(meter, 7_200)
    line = meter.snapshot()
    assert "\n" not in line
    assert "session 8,100/10,000 (81%)" in line
    assert "wrap up" in line
