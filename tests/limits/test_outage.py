"""A store that goes away in the middle: work goes on, it is said once, and everything is counted at last."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.core.errors import StorageError, StoreUnreachable
from lopen.limits.agents import AgentLimits, read_agents
from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.call_gate import ToolPass
from lopen.limits.charging import RETRY_S, Debt, Debts
from lopen.limits.meter import Meter
from lopen.limits.records import Reservation
from lopen.limits.redis_store import RedisStore
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import LimitsStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from lopen.store.database import Database
from tests.fakes import FakeClock
from tests.limits.conftest import spend
from tests.limits.redis_server import RedisServer


class Watched:
    """A process of the project, over a store that can be taken away, and the warnings about that."""

    def __init__(self, store: LimitsStore, clock: FakeClock) -> None:
        self.said: list[str] = []
        self.meter = Meter(store, Settings(), clock, warn=self.said.append)
        self.meter.open("s1", "m", "t1")

    def used(self) -> list[tuple[int, int]]:
        return [(state.tokens_used, state.reserved) for state in self.meter.states()]


def debts(database: Database) -> int:
    """Return how many debts the project keeps."""
    count: int = database.connection.execute("SELECT count(*) FROM memos WHERE key LIKE 'debt:%'").fetchone()[
        0
    ]
    return count


def test_a_redis_that_goes_and_comes_back_is_caught_up(
    own_redis: RedisServer, database: Database, clock: FakeClock
) -> None:
    watched = Watched(RedisStore(own_redis.url, database), clock)
    spend(watched.meter, 1_000)
    under_way = watched.meter.reserve(500, 1_500)
    own_redis.hang()
    watched.meter.settle(under_way, Usage(500, 1_500), 0.01, "opus")
    spend(watched.meter, 340_000)
    clock.advance(1)
    assert isinstance(watched.meter.gate.before_tool("read_file", {}, 1), ToolPass)
    assert len(watched.said) == 1
    assert "work goes on" in watched.said[0]
    assert "not counted" in watched.meter.snapshot()
    own_redis.go_on()
    clock.advance(RETRY_S)
    assert watched.used() == [(343_000, 0)] * 3
    assert len(watched.said) == 2
    assert spend(watched.meter, 7) == ["warning_threshold"], "crossed meanwhile, announced now"
    assert watched.used() == [(343_007, 0)] * 3


def test_the_debts_of_a_process_are_paid_by_the_next_one_once(
    own_redis: RedisServer, database: Database, clock: FakeClock
) -> None:
    first = Watched(RedisStore(own_redis.url, database), clock)
    spend(first.meter, 1_000, 0.01)
    under_way = first.meter.reserve(0, 2_000, "oracle")
    own_redis.hang()
    first.meter.settle(under_way, Usage(output_tokens=2_000), 1.5, "opus")
    spend(first.meter, 100, 0.01)
    assert first.meter.cost() == pytest.approx(1.52)
    assert debts(database) == 2
    own_redis.go_on()

    later = RedisStore(own_redis.url, database)
    assert [tokens for tokens, _ in Watched(later, clock).used()] == [3_100, 3_100, 1_100]
    assert debts(database) == 0
    clock.advance(RETRY_S)
    spend(first.meter, 5)
    assert first.used()[1] == (3_105, 0)
    agents = later.atomically(lambda rows: read_agents(rows, "session:s1"))
    assert agents.cost_usd == pytest.approx(1.5)


def test_promises_that_ended_in_an_outage_are_given_back_or_charged_by_the_next_process(
    own_redis: RedisServer, database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Watched(RedisStore(own_redis.url, database), clock)
    abandoned = first.meter.reserve(50_000, 16_000)
    first.meter.reserve(1_000, 2_000)  # its process dies
    own_redis.hang()
    first.meter.abandon(abandoned)
    monkeypatch.setattr("lopen.limits.meter.is_gone", lambda owner: True)
    resumed = Watched(RedisStore(own_redis.url, database), clock)
    assert resumed.meter.recover("s1") == ()
    own_redis.go_on()
    clock.advance(RETRY_S)
    assert resumed.used() == [(1_000, 0), (1_000, 0), (0, 0)], "an estimate uses up no task"


def test_a_database_that_another_holds_is_caught_up_also_after_a_turn_that_cannot_be_recorded(
    database: Database, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = Database(tmp_path / "state.db", timeout_s=0.05)
    watched = Watched(SqliteStore(locked), clock)
    under_way = watched.meter.reserve(0, 340_000)
    with database.transaction():
        unsure = watched.meter.reserve(0, 76)
        assert (unsure.sure, len(watched.said)) == (False, 1)
        with pytest.raises(StorageError):
            watched.meter.settle(under_way, Usage(output_tokens=340_000), 0.01, "opus")
    events = watched.meter.settle(unsure, Usage(output_tokens=76), 0.01, "opus")
    assert (events, debts(database)) == ((), 1)
    clock.advance(RETRY_S)
    assert watched.used()[1] == (76, 340_000)
    monkeypatch.setattr("lopen.limits.meter.is_gone", lambda owner: True)
    watched.meter.recover("s1")
    assert watched.used() == [(76, 0)] * 3
    locked.close()


def test_a_reply_that_was_lost_is_not_counted_twice(database: Database, clock: FakeClock) -> None:
    class LosesReplies(SqliteStore):
        lose = False

        def atomically(self, work):  # type: ignore[no-untyped-def] # the protocol's own signature
            result = super().atomically(work)
            if self.lose:
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
    assert watched.used() == [(5_000, 0)] * 3


def test_a_debt_whose_payment_was_not_answered_is_counted_once(database: Database, clock: FakeClock) -> None:
    class LosesAnswer(SqliteStore):
        lost = False

        def atomically(self, work):  # type: ignore[no-untyped-def] # the protocol's own signature
            result = super().atomically(work)
            if not self.lost:
                self.lost = True
                raise StoreUnreachable("the answer was lost")
            return result

    store = LosesAnswer(database)
    debts = Debts(store, AgentLimits())
    never_made = Reservation("r", "s", "here", ("session:s",), 100)
    debts.owe(Debt((BudgetSpec("session:s", "session", 1_000),), Charge(40), never_made, sure=False))
    with pytest.raises(StoreUnreachable):
        debts.pay(clock.now())
    debts.pay(clock.now())
    assert [state.tokens_used for state in store.budgets()] == [40]


def test_a_debt_that_two_processes_list_is_paid_by_one(
    database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(database)
    debts = Debts(store, AgentLimits())
    never_made = Reservation("r", "s", "here", ("session:s",), 100)
    debt = Debt((BudgetSpec("session:s", "session", 1_000),), Charge(40), never_made, sure=False)
    debts.owe(debt)
    monkeypatch.setattr(debts, "owed", lambda: [debt])
    debts.pay(clock.now())
    debts.pay(clock.now())
    assert [state.tokens_used for state in store.budgets()] == [40]
