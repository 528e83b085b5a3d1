"""What is particular to Redis: the keys others may read, expiry, and a server that misbehaves."""

from __future__ import annotations

import socket
from datetime import UTC, datetime

import pytest
import redis

from lopen.core.errors import StoreUnreachable, WrongUsage
from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.circuits import CircuitCall, CircuitState
from lopen.limits.redis_store import RedisStore
from lopen.store.database import Database
from tests.limits.conftest import charged
from tests.limits.redis_server import RedisServer
from tests.limits.test_store import announce

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = BudgetSpec("session:s", "session", 100)


def test_keys_types_and_expiry_are_the_contracts(own_redis: RedisServer, database: Database) -> None:
    store = RedisStore(own_redis.url, database)
    charged(store, [SPEC], Charge(90), NOW)
    for number in range(5):
        announce(store, CircuitCall("t", "same", str(number)), NOW)
    client = redis.Redis(port=own_redis.port, decode_responses=True)
    kinds = {
        "lopen:budget:state:session:s": "hash",
        "lopen:budget:usage:session:s": "string",
        "lopen:budget:alerts:session:s": "list",
        "lopen:budget:active": "set",
        "lopen:circuit:state:session:s": "hash",
        "lopen:circuit:iterations:session:s": "string",
        "lopen:circuit:toollog:session:s": "list",
    }
    assert {key: client.type(key) for key in kinds} == kinds
    for key in client.keys("*"):
        assert 86_000 < int(str(client.ttl(key))) <= 86_400, key
    assert client.get("lopen:budget:usage:session:s") == "90"
    assert client.hget("lopen:budget:state:session:s", "max_tokens") == "100"
    assert client.hget("lopen:circuit:state:session:s", "state") == '"open"'
    assert client.llen("lopen:circuit:toollog:session:s") == 4
    client.close()
    store.close()


def test_a_server_that_is_not_there_is_unreachable_and_its_password_is_not_told(database: Database) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = RedisStore(f"redis://me:hunter2@127.0.0.1:{port}/0", database)
    with pytest.raises(StoreUnreachable, match=str(port)) as raised:
        charged(store, [SPEC], Charge(1), NOW)
    assert "hunter2" not in raised.value.message
    assert "me:" not in raised.value.message


def test_values_of_another_kind_at_lopens_keys_are_unreachable_not_a_crash(
    own_redis: RedisServer, database: Database
) -> None:
    store = RedisStore(own_redis.url, database)
    charged(store, [SPEC], Charge(1), NOW)
    client = redis.Redis(port=own_redis.port)
    client.hset("lopen:budget:state:session:s", "max_tokens", "many")
    with pytest.raises(StoreUnreachable):
        store.budgets()
    client.set("lopen:circuit:state:session:s", "text")
    with pytest.raises(StoreUnreachable):
        store.atomically(lambda rows: rows.circuit("session:s"))
    client.close()
    store.close()


def test_an_address_that_is_none_is_wrong_usage(database: Database) -> None:
    with pytest.raises(WrongUsage, match=r"budget\.store"):
        RedisStore("http://127.0.0.1", database)


def test_names_whose_keys_expired_are_taken_out_of_the_sets(
    own_redis: RedisServer, database: Database
) -> None:
    store = RedisStore(own_redis.url, database)
    charged(store, [SPEC], Charge(90), NOW)
    store.atomically(lambda rows: rows.put_circuit(CircuitState("session:s")))
    store._client.sadd("lopen:budget:active", "session:old")
    store._client.sadd("lopen:circuit:active", "session:old")
    store._client.sadd("lopen:budget:alerted", "session:old")
    assert ([b.budget_id for b in store.budgets()], len(store.circuits())) == (["session:s"], 1)
    assert [a.budget_id for a in store.alerts()] == ["session:s"]
    for name in ("lopen:budget:active", "lopen:circuit:active", "lopen:budget:alerted"):
        assert store._client.smembers(name) == {"session:s"}
    store.close()


def test_a_budget_of_which_half_is_missing_is_unreachable(own_redis: RedisServer, database: Database) -> None:
    client = redis.Redis(port=own_redis.port, decode_responses=True)
    client.hset("lopen:budget:state:session:x", "budget_id", '"session:x"')
    client.sadd("lopen:budget:active", "session:x")
    store = RedisStore(own_redis.url, database)
    with pytest.raises(StoreUnreachable, match="not a stored BudgetState"):
        store.budgets()
    client.close()
    store.close()
