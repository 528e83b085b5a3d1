"""The store in both kinds: every test that takes `store` runs on SQLite and on a real Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lopen.core.events import AlertRaised
from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.charging import charge_all
from lopen.limits.meter import Meter
from lopen.limits.records import Alert
from lopen.limits.redis_store import RedisStore
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import LimitsStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from lopen.store.database import Database
from tests.fakes import FakeClock
from tests.limits.redis_server import RedisServer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MakeMeter = Callable[..., Meter]


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may stop."""
    server = RedisServer(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.db")
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path, database: Database) -> Iterator[LimitsStore]:
    if request.param == "sqlite":
        yield SqliteStore(database)
        return
    server: RedisServer = request.getfixturevalue("shared_redis")
    prefix = f"test{tmp_path.name}{id(request)}".replace("-", "_")
    redis = RedisStore(server.url, database, prefix=prefix, answer_s=30, operation_s=60)
    yield redis
    redis.close()


@pytest.fixture
def make_meter(store: LimitsStore, clock: FakeClock) -> MakeMeter:
    """A meter, opened for session s1, module m and task t1; keywords are setting tables."""

    def make(*, on: LimitsStore | None = None, task: str | None = "t1", **tables: object) -> Meter:
        meter = Meter(on or store, Settings.model_validate(tables), clock)
        meter.open("s1", "m", task)
        return meter

    return make


def charged(
    store: LimitsStore, specs: Sequence[BudgetSpec], charge: Charge, now: datetime = NOW
) -> list[Alert]:
    """Charge budgets in a transaction of their own."""
    return store.atomically(lambda rows: charge_all(rows, specs, charge, now))


def spend(meter: Meter, tokens: int, cost: float | None = 0.0, agent: str = "") -> list[str]:
    """Pay for one answer; the alerts that it raised."""
    grant = meter.reserve(0, tokens, agent)
    events = meter.settle(grant, Usage(output_tokens=tokens), cost, "opus")
    return [e.alert_type for e in events if isinstance(e, AlertRaised)]
