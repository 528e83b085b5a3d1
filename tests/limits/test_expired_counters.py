"""Budgets in Redis whose keys expired: what was used before stays used (docs/reference/budgets-and-circuits.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from lopen.core.clock import SystemClock
from lopen.limits.admin_actions import extend_budget, reset_budget
from lopen.limits.budget import BudgetState
from lopen.limits.meter import BudgetReached, Meter
from lopen.limits.opening import open_limits
from lopen.limits.redis_store import RedisStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from lopen.store.database import Database
from tests.limits.conftest import spend
from tests.limits.redis_server import RedisServer

CLOCK = SystemClock()
Begin = Callable[[str], Meter]


@pytest.fixture
def store(database: Database, own_redis: RedisServer) -> Iterator[RedisStore]:
    opened = open_limits(_settings(own_redis), database)
    assert isinstance(opened, RedisStore)
    yield opened
    opened.close()


def _settings(server: RedisServer) -> Settings:
    return Settings.model_validate({"budget": {"store": server.url, "ttl_s": 1, "session_tokens": 5_000}})


@pytest.fixture
def begin(store: RedisStore, own_redis: RedisServer) -> Begin:
    """Open a meter as a process does that begins or resumes this session."""

    def make(session: str) -> Meter:
        meter = Meter(store, _settings(own_redis), CLOCK)
        meter.open(session, "m", "t1")
        return meter

    return make


def _expire(store: RedisStore) -> None:
    until = time.monotonic() + 10
    while store._client.dbsize():
        assert time.monotonic() < until, "the keys do not expire"
        time.sleep(0.1)


def _used(states: list[BudgetState]) -> dict[str, tuple[int, int, float, int]]:
    return {s.budget_type: (s.tokens_used, s.requests_used, s.cost_usd, s.reserved) for s in states}


def test_expired_budgets_resume_with_what_was_used(begin: Begin, store: RedisStore) -> None:
    spend(begin("s1"), 1_500, 0.5)
    spend(begin("s2"), 1_000, 0.25)
    _expire(store)
    resumed = begin("s1")
    assert _used(resumed.states()) == {
        "module": (2_500, 2, 0.75, 0),
        "session": (1_500, 1, 0.5, 0),
        "task": (2_500, 2, 0.75, 0),
    }
    assert resumed.cost() == 0.5
    assert spend(resumed, 2_600) == ["warning_threshold"]
    _expire(store)
    assert spend(begin("s1"), 100) == []  # announced before
    _expire(store)
    with pytest.raises(BudgetReached, match=r"session:s1.*4,200"):
        resumed.reserve(1_000, 4_000)  # its process still runs


def test_a_request_that_outlasts_the_keys_counts_on_top(begin: Begin, store: RedisStore) -> None:
    meter = begin("s1")
    spend(meter, 1_500)
    grant = meter.reserve(0, 1_200)
    _expire(store)
    meter.settle(grant, Usage(output_tokens=1_200), 0.1, "opus")
    assert _used(meter.states())["session"] == (2_700, 2, 0.1, 0)


def test_what_a_person_granted_or_reset_outlives_the_keys(begin: Begin, store: RedisStore) -> None:
    spend(begin("s1"), 1_500)
    extend_budget(store, "session:s1", 3_000, "larger than planned", CLOCK.now())
    reset_budget(store, "module:m", CLOCK.now())
    _expire(store)
    states = {s.budget_type: s for s in begin("s1").states()}
    assert (states["session"].max_tokens, states["session"].tokens_used) == (8_000, 1_500)
    assert states["module"].tokens_used == 0
