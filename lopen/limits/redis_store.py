"""The limits' store in Redis (extra `lopen[redis]`). The only importer of `redis`.

Usage counters are incremented in one script on the server, so that no increment is lost and none is made
twice; everything else changes under WATCH. The client's own retries are off: a reply that was lost
would otherwise count an amount again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from lopen.errors import WrongUsage
from lopen.limits.budget import BudgetSpec, BudgetState, Charge, Usage, due
from lopen.limits.charging import PAID, settle
from lopen.limits.circuit import CircuitState
from lopen.limits.outage import StoreUnreachable
from lopen.limits.records import Alert, Incident, Reservation, Spend, ToolCount, load
from lopen.limits.redis_rows import SEPARATOR, Keys, RedisRows, announcement, read_budget, spend_fields
from lopen.limits.store import Rows
from lopen.limits.texts import budget_alert

ANSWER_S = 1.0  # a Redis that takes longer is treated as gone
CONTENDED_S = 5.0

# Charges budgets that are there, gives back what was promised, and says how each stands then: all or nothing, on
# the server. Nil where one of the budgets is not there; an empty list where the promise was settled before.
# KEYS: reservations, the settlement's mark, then state, usage and spend of each budget.
# ARGV: ttl, promise ("" for none), promised tokens, the mark's text, tokens, requests, cost, unpriced, now, then
# pairs of a spend field and its amount.
_CHARGE = """
for i = 3, #KEYS, 3 do
    if redis.call('HEXISTS', KEYS[i], 'budget_id') == 0 then return nil end
end
local released = ARGV[2] ~= '' and redis.call('HDEL', KEYS[1], ARGV[2]) == 1
if ARGV[2] ~= '' then
    if not released and redis.call('EXISTS', KEYS[2]) == 1 then return {} end
    redis.call('SET', KEYS[2], ARGV[4], 'EX', ARGV[1])
end
local function give_back(state, field, amount)
    if redis.call('HINCRBY', state, field, -amount) < 0 then redis.call('HSET', state, field, 0) end
end
local found = {}
for i = 3, #KEYS, 3 do
    local state, usage, spend = KEYS[i], KEYS[i + 1], KEYS[i + 2]
    if released then
        give_back(state, 'reserved', ARGV[3])
        give_back(state, 'requests_reserved', 1)
    end
    found[#found + 1] = redis.call('INCRBY', usage, ARGV[5])
    redis.call('HINCRBY', state, 'requests_used', ARGV[6])
    redis.call('HINCRBYFLOAT', state, 'cost_usd', ARGV[7])
    redis.call('HINCRBY', state, 'unpriced_tokens', ARGV[8])
    redis.call('HSET', state, 'last_updated', ARGV[9])
    for a = 10, #ARGV, 2 do redis.call('HINCRBYFLOAT', spend, ARGV[a], ARGV[a + 1]) end
    for k = i, i + 2 do redis.call('EXPIRE', KEYS[k], ARGV[1]) end
    found[#found + 1] = cjson.encode(redis.call('HGETALL', state))
end
return found
"""

T = TypeVar("T")


class RedisStore:
    """`LimitsStore` over a Redis server."""

    def __init__(
        self, url: str, *, prefix: str = "lopen", ttl_s: int = 86_400, answer_s: float = ANSWER_S
    ) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise WrongUsage(
                "budget.store names a Redis, but the redis package is not installed",
                hint="pip install 'lopen[redis]'",
            ) from error
        self._where = _shown(url)
        self._failures = (redis.RedisError, OSError, ValueError)
        self._conflict: type[Exception] = redis.WatchError
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                decode_responses=True,
                socket_timeout=answer_s,
                socket_connect_timeout=answer_s,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise WrongUsage(f"budget.store: {error}", hint="redis://HOST:PORT/DB") from error
        self._charge = self._client.register_script(_CHARGE)
        self._key = Keys(prefix)
        self._ttl = ttl_s

    def _reached(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except self._failures as error:
            raise StoreUnreachable(f"the limits' store at {self._where}: {error}") from error

    def atomically(self, work: Callable[[Rows], T]) -> T:
        """`work` under WATCH, again where another writer came between; gives up after 5 s of that."""
        return self._reached(lambda: self._transacted(work))

    def _transacted(self, work: Callable[[Rows], T]) -> T:
        until = time.monotonic() + CONTENDED_S
        while time.monotonic() < until:
            with self._client.pipeline() as pipe:
                rows = RedisRows(pipe, self._key, self._ttl)
                try:
                    result = work(rows)
                    rows.commit()
                except self._conflict:
                    continue
                return result
        raise StoreUnreachable(f"the limits' store at {self._where}: too many writers at once")

    def record(
        self,
        specs: Sequence[BudgetSpec],
        charge: Charge,
        now: datetime,
        promised: Reservation | None = None,
        *,
        sure: bool = True,
    ) -> list[tuple[BudgetState, tuple[Alert, ...]]]:
        """See `LimitsStore.record`. One script on the server, so that writers never wait for one another."""
        return self._reached(lambda: self._recorded(specs, charge, now, promised, sure))

    def _recorded(
        self,
        specs: Sequence[BudgetSpec],
        charge: Charge,
        now: datetime,
        promised: Reservation | None,
        sure: bool,
    ) -> list[tuple[BudgetState, tuple[Alert, ...]]]:
        parts = ("state", "usage", "spend")
        keys = [self._key(f"budget:{part}", spec.budget_id) for spec in specs for part in parts]
        session, promise, tokens = ("", "", 0)
        if promised is not None:
            session, promise, tokens = promised.session, promised.reservation_id, promised.tokens
        numbers = (charge.tokens, charge.requests, charge.cost_usd or 0.0, charge.unpriced_tokens)
        pairs = [item for pair in spend_fields(charge).items() for item in pair]
        answer = self._charge(
            keys=[self._key("budget:reservations", session), self._key("memo", PAID + promise), *keys],
            args=[
                self._ttl,
                promise,
                tokens,
                json.dumps({"at": now.isoformat()}),
                *numbers,
                now.isoformat(),
                *pairs,
            ],
        )
        if answer is None:
            return self._transacted(lambda rows: settle(rows, specs, charge, now, promised, sure=sure))
        states = [_charged(*found) for found in zip(answer[::2], answer[1::2], strict=True)]
        return [
            (state, tuple(a for crossing in due(state) for a in self._claimed(state, crossing, now)))
            for state in states
        ]

    def _claimed(self, state: BudgetState, crossing: str, now: datetime) -> tuple[Alert, ...]:
        """The alert, if no other writer has announced this crossing."""
        key = self._key("budget:state", state.budget_id)
        if not self._client.hsetnx(key, announcement(crossing), "1"):
            return ()
        alert = budget_alert(state, crossing, now)
        self._transacted(lambda rows: rows.add_alert(alert))
        return (alert,)

    def budgets(self) -> list[BudgetState]:
        def read() -> list[BudgetState]:
            ids = sorted(self._client.smembers(self._key("budget:active")))
            with self._client.pipeline(transaction=False) as pipe:
                for budget_id in ids:
                    pipe.hgetall(self._key("budget:state", budget_id))
                    pipe.get(self._key("budget:usage", budget_id))
                found = pipe.execute()
            states = [read_budget(f, u) for f, u in zip(found[::2], found[1::2], strict=True)]
            return [s for s in states if s is not None]

        return self._reached(read)

    def circuits(self) -> list[CircuitState]:
        ids = self._reached(lambda: sorted(self._client.smembers(self._key("circuit:active"))))
        found = self.atomically(lambda rows: [rows.circuit(i) for i in ids])
        return [c for c in found if c is not None]

    def alerts(self, budget_id: str | None = None, acknowledged: bool | None = None) -> list[Alert]:
        def read() -> list[Alert]:
            ids = [budget_id] if budget_id else self._client.smembers(self._key("budget:alerted"))
            texts = [t for i in ids for t in self._client.lrange(self._key("budget:alerts", i), 0, -1)]
            return [load(Alert, text) for text in texts]

        found = sorted(self._reached(read), key=lambda a: a.timestamp)
        return [a for a in found if acknowledged in (None, a.acknowledged)]

    def incidents(self, circuit_id: str | None = None) -> list[Incident]:
        def read() -> list[Incident]:
            ids = [circuit_id] if circuit_id else self._client.smembers(self._key("circuit:active"))
            texts = [t for i in ids for t in self._client.lrange(self._key("circuit:incidents", i), 0, -1)]
            return [load(Incident, text) for text in texts]

        return sorted(self._reached(read), key=lambda i: i.at)

    def spend(self, budget_id: str | None = None) -> list[Spend]:
        def read() -> list[Spend]:
            ids = [budget_id] if budget_id else self._client.smembers(self._key("budget:active"))
            return [s for i in ids for s in _spends(i, self._client.hgetall(self._key("budget:spend", i)))]

        return self._reached(read)

    def tool_counts(self) -> list[ToolCount]:
        def read() -> list[ToolCount]:
            counts = []
            for circuit_id in self._client.smembers(self._key("circuit:active")):
                found = self._client.hgetall(self._key("circuit:toolcounts", circuit_id))
                for field, calls in found.items():
                    agent, tool = field.split(SEPARATOR)
                    counts.append(ToolCount(circuit_id, agent, tool, int(calls)))
            return counts

        return self._reached(read)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def _charged(used: int, fields: str) -> BudgetState:
    """A budget as the script left it: one string is read three times faster than a list."""
    pairs = json.loads(fields)
    state = read_budget(dict(zip(pairs[::2], pairs[1::2], strict=True)), used)
    if state is None:
        raise ValueError("what was charged is no budget")
    return state


def _spends(budget_id: str, fields: dict[str, str]) -> list[Spend]:
    by_key: dict[tuple[str, str], dict[str, float]] = {}
    for field, amount in fields.items():
        agent, model, name = field.split(SEPARATOR)
        by_key.setdefault((agent, model), {})[name] = float(amount)
    spends = []
    for (agent, model), parts in by_key.items():
        cost = parts.pop("cost_usd", 0.0)
        whole = {name: int(amount) for name, amount in parts.items()}
        usage = Usage(**{name: whole.pop(name, 0) for name in Usage.names})
        spends.append(Spend(budget_id, agent, model, usage, cost_usd=cost, **whole))
    return spends


def _shown(url: str) -> str:
    """The address without user and password."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}:{parts.port or 6379}" if parts.scheme != "unix" else parts.path
