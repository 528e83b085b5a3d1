"""A store that goes away in the middle: work goes on, it is said once, and everything is counted at last."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.core.events import AlertRaised
from lopen.limits.agents import AgentLimits, read_agents
from lopen.limits.call_gate import ToolPass
from lopen.limits.charging import RETRY_S, Debt, Debts
from lopen.limits.meter import Meter
from lopen.limits.redis_store import RedisStore
from lopen.limits.sqlite_store import SqliteStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from lopen.store.database import Database
from tests.limits.redis_server import RedisServer


class Watched:
    """A meter over a store that can be taken away, and what was said about that."""

    def __init__(self, store: SqliteStore | RedisStore, clock: FakeClock) -> None:
        self.said: list[str] = []
        self.clock = clock
        self.meter = Meter(store, Settings(), clock, warn=self.said.append)
        self.meter.open("s1", "m", "t1")

    def spend(self, tokens: int) -> None:
        self.meter.settle(self.meter.reserve(0, tokens), Usage(output_tokens=tokens), 0.01, "opus")

    def used(self) -> int:
        return self.meter.states()[1].tokens_used


def test_a_redis_that_goes_and_comes_back_empty_is_caught_up(
    own_redis: RedisServer, database: Database, clock: FakeClock
) -> None:
    store = RedisStore(own_redis.url, copies=SqliteStore(database))
    watched = Watched(store, clock)
    watched.spend(1_000)
    under_way = watched.meter.reserve(500, 1_500)
    own_redis.stop()
    watched.meter.settle(under_way, Usage(500, 1_500), 0.01, "opus")
    for _ in range(20):
        watched.spend(100)
        clock.advance(1)
        assert isinstance(watched.meter.gate.before_tool("read_file", {}, 1), ToolPass)
    assert len(watched.said) == 1
    assert "work goes on" in watched.said[0]
    assert "not counted" in watched.meter.snapshot()
    own_redis.start()
    clock.advance(RETRY_S)
    assert watched.used() == 5_000
    assert len(watched.said) == 2
    watched.spend(7)
    assert watched.used() == 5_007
    store.close()


def owing(database: Database, url: str, clock: FakeClock) -> Watched:
    """A process of the project whose Redis may be gone."""
    return Watched(RedisStore(url, copies=SqliteStore(database)), clock)


def owed(database: Database) -> list[Debt]:
    """The debts that the project keeps."""
    return Debts(RedisStore("redis://nowhere", copies=SqliteStore(database)), AgentLimits())._owed


def test_what_a_gone_redis_is_owed_is_paid_by_the_next_process_once(
    own_redis: RedisServer, database: Database, clock: FakeClock
) -> None:
    first = owing(database, own_redis.url, clock)
    first.spend(1_000)
    under_way = first.meter.reserve(0, 2_000, "oracle")
    own_redis.stop()
    first.meter.settle(under_way, Usage(output_tokens=2_000), 1.5, "opus")
    first.spend(100)
    assert first.meter.cost() == pytest.approx(1.52)
    assert len(owed(database)) == 2

    own_redis.start()
    later = [
        owing(database, own_redis.url, clock) for _ in range(2)
    ]  # both read the debts before either pays

    assert [each.used() for each in later] == [3_100, 3_100]
    assert owed(database) == []
    clock.advance(RETRY_S)
    first.spend(5)  # the first one lives and pays what is paid already
    assert first.used() == 3_105
    assert later[0].meter.cost() == pytest.approx(1.53)
    agents = RedisStore(own_redis.url).atomically(lambda rows: read_agents(rows, "session:s1"))
    assert agents.cost_usd == pytest.approx(1.5)


def test_a_promise_given_back_while_the_store_is_gone_is_not_charged_later(
    own_redis: RedisServer, database: Database, clock: FakeClock
) -> None:
    first = owing(database, own_redis.url, clock)
    under_way = first.meter.reserve(50_000, 16_000)
    own_redis.hang()
    first.meter.abandon(under_way)
    own_redis.go_on()
    assert len(owed(database)) == 1

    next_one = owing(database, own_redis.url, clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lopen.limits.meter.is_gone", lambda owner: True)
        next_one.meter.recover("s1")

    assert [(s.tokens_used, s.reserved) for s in next_one.meter.states()] == [(0, 0)] * 3
    assert owed(database) == []


def test_what_a_crash_left_is_charged_when_the_store_is_back_if_it_was_gone_at_the_start(
    own_redis: RedisServer, database: Database, clock: FakeClock
) -> None:
    owing(database, own_redis.url, clock).meter.reserve(1_000, 2_000)
    own_redis.hang()
    resumed = owing(database, own_redis.url, clock)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lopen.limits.meter.is_gone", lambda owner: True)
        assert resumed.meter.recover("s1") == ()
        own_redis.go_on()
        clock.advance(RETRY_S)
        found = [(s.tokens_used, s.reserved) for s in resumed.meter.states()]
        assert found == [(1_000, 0), (1_000, 0), (0, 0)], "an estimate uses up no task"


@pytest.fixture
def locker(tmp_path: Path, database: Database) -> Iterator[sqlite3.Connection]:
    assert database.path == tmp_path / "state.db"
    connection = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    yield connection
    connection.close()


def test_a_database_that_another_holds_is_caught_up(
    locker: sqlite3.Connection, tmp_path: Path, clock: FakeClock
) -> None:
    database = Database(tmp_path / "state.db", timeout_s=0.05)
    watched = Watched(SqliteStore(database), clock)
    watched.spend(1_000)
    under_way = watched.meter.reserve(0, 1_024)
    locker.execute("BEGIN IMMEDIATE")
    watched.meter.settle(under_way, Usage(output_tokens=24), 0.01, "opus")
    watched.spend(76)
    assert len(watched.said) == 1
    locker.execute("ROLLBACK")
    clock.advance(RETRY_S)
    assert watched.used() == 1_100
    assert [s.reserved for s in watched.meter.states()] == [0, 0, 0]
    database.close()


def test_thresholds_crossed_while_the_store_was_gone_are_announced_when_it_is_back(
    locker: sqlite3.Connection, tmp_path: Path, clock: FakeClock
) -> None:
    database = Database(tmp_path / "state.db", timeout_s=0.05)
    watched = Watched(SqliteStore(database), clock)
    locker.execute("BEGIN IMMEDIATE")
    watched.spend(340_000)
    locker.execute("ROLLBACK")
    clock.advance(RETRY_S)
    events = watched.meter.settle(watched.meter.reserve(0, 10), Usage(output_tokens=1), 0.01)
    stored = [a.alert_type for a in SqliteStore(database).alerts("task:t1")]
    assert stored == ["warning_threshold"]
    assert [e.budget_id for e in events if isinstance(e, AlertRaised)] == ["task:t1"]
    database.close()


def test_a_reply_that_was_lost_is_not_counted_twice(database: Database, clock: FakeClock) -> None:
    class LosesReplies(SqliteStore):
        lose = False

        def atomically(self, work):  # type: ignore[no-untyped-def] # the protocol's own signature
            result = super().atomically(work)
            if self.lose:
                from lopen.core.errors import StoreUnreachable

                raise StoreUnreachable("the reply was lost")
            return result

    store = LosesReplies(database)
    watched = Watched(store, clock)
    grant = watched.meter.reserve(0, 2_000)
    store.lose = True
    watched.meter.settle(grant, Usage(output_tokens=2_000), 0.01)
    clock.advance(RETRY_S)
    lost = watched.meter.reserve(0, 3_000)
    store.lose = False
    clock.advance(RETRY_S)
    watched.meter.settle(lost, Usage(output_tokens=3_000), 0.01)
    assert watched.used() == 5_000
    assert [s.reserved for s in watched.meter.states()] == [0, 0, 0]
