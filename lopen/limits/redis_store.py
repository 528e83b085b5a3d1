"""The limits' store in Redis, by redis-py: changes of one transaction are read under WATCH and written as one MULTI.

Keys: `<prefix>:budget:state:<id>` hash of fields, `:budget:usage:<id>` counter, `:budget:spend:<id>` hash,
`:budget:alerts:<id>` list, `:budget:active` set, `:budget:reservations` hash, `:circuit:state:<id>` hash of fields,
`:circuit:iterations:<id>` counter, `:circuit:toollog:<id>` list of the newest calls, `:circuit:incidents:<id>` list,
`:circuit:active` set, `:memo:<key>` string. Every key expires after the configured time without a write.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lopen.core.errors import StoreUnreachable, WrongUsage
from lopen.core.person import sealed
from lopen.guardrails.call_history import LoggedCall
from lopen.limits.budget import BudgetSpec, BudgetState, Charge
from lopen.limits.circuits import CircuitState
from lopen.limits.records import (
    EVIDENCE_KEPT,
    Alert,
    Incident,
    Reservation,
    Spend,
    UnreadableRecord,
    decoded,
    dump,
    field_values,
    load,
    parsed,
)
from lopen.limits.store import Rows
from lopen.models.messages import Usage
from lopen.store.database import Database

T = TypeVar("T")
V = TypeVar("V")
ANSWER_S = 1.0  # a Redis that takes longer for one answer is treated as gone
OPERATION_S = 2.0  # and one where other writers come between for longer
DEFAULT_PREFIX = "lopen"
SEPARATOR = "\x1f"
_SPEC = frozenset(BudgetSpec.__dataclass_fields__)
_COUNTS = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens")  # `Usage.counts`


def project_prefix(prefix: str, root: str) -> str:
    """The first part of every key: the person's setting, else a prefix that is unique to this person's project."""
    if prefix != DEFAULT_PREFIX:
        return prefix
    return f"{prefix}:{sealed('project', os.path.realpath(root))[:12]}"


class RedisRows:
    """One view: reads under WATCH, writes gathered and sent as one MULTI by `commit`."""

    def __init__(self, store: RedisStore, pipe: Any) -> None:
        """`pipe` is redis-py's, whose types know no decoded answers."""
        self._key = store.key
        self._ttl = store.ttl_s
        self._evidence_max = store.evidence_max
        self._pipe = pipe
        self._seen: dict[str, Any] = {}  # what lies at a key, as this transaction left it
        self._writes: list[tuple[str, tuple[Any, ...]]] = []

    def _read(self, key: str, read: Callable[[], T]) -> T:
        if key not in self._seen:
            self._pipe.watch(key)
            self._seen[key] = read()
        found: T = self._seen[key]
        return found

    def _write(self, command: str, key: str, *parts: Any) -> None:
        self._writes.append((command, (key, *parts)))

    def commit(self) -> None:
        """Send it all; `redis.WatchError` where another writer came between."""
        if not self._writes:
            return
        self._pipe.multi()
        for command, parts in self._writes:
            self._pipe.execute_command(command, *parts)
        for key in dict.fromkeys(parts[0] for _, parts in self._writes):
            self._pipe.expire(key, self._ttl)
        self._pipe.execute()

    def budget(self, budget_id: str) -> BudgetState | None:
        state, usage = self._key("budget:state", budget_id), self._key("budget:usage", budget_id)
        return self._read(state, lambda: _budget(self._pipe.hgetall(state), self._pipe.get(usage)))

    def put_budget(self, state: BudgetState) -> None:
        key, fields = self._key("budget:state", state.budget_id), field_values(state)
        spec, used = field_values(fields.pop("spec")), fields.pop("tokens_used")
        self._seen[key] = state
        self._write("HSET", key, *_flat({name: dump(each) for name, each in (spec | fields).items()}))
        self._write("SET", self._key("budget:usage", state.budget_id), used)
        self._write("SADD", self._key("budget:active"), state.budget_id)

    def add_spend(self, budget_id: str, charge: Charge) -> None:
        amounts = dict(zip(_COUNTS, charge.usage.counts, strict=True)) | {
            "requests": charge.requests,
            "tokens": charge.tokens,
            "cost_usd": charge.cost_usd or 0.0,
            "unpriced_tokens": charge.unpriced_tokens,
        }
        for name, amount in amounts.items():
            field = SEPARATOR.join((charge.agent, charge.model, name))
            self._write("HINCRBYFLOAT", self._key("budget:spend", budget_id), field, amount)

    def drop_spend(self, budget_id: str) -> None:
        self._write("DEL", self._key("budget:spend", budget_id))

    def circuit(self, circuit_id: str) -> CircuitState | None:
        key = self._key("circuit:state", circuit_id)

        def read() -> CircuitState | None:
            fields = self._pipe.hgetall(key)
            if not fields:
                return None
            found = decoded(CircuitState, {name: parsed(text) for name, text in fields.items()})
            toollog = self._pipe.lrange(self._key("circuit:toollog", circuit_id), 0, -1)
            log = tuple(load(LoggedCall, text) for text in toollog)
            count = load(int, self._pipe.get(self._key("circuit:iterations", circuit_id)) or "0")
            return replace(found, calls=replace(found.calls, log=log, iteration_count=count))

        return self._read(key, read)

    def put_circuit(self, state: CircuitState) -> None:
        key, log = (self._key(f"circuit:{part}", state.circuit_id) for part in ("state", "toollog"))
        self._seen[key] = state
        fields = field_values(replace(state, calls=replace(state.calls, log=(), iteration_count=0)))
        self._write("HSET", key, *_flat({name: dump(each) for name, each in fields.items()}))
        self._write("SET", self._key("circuit:iterations", state.circuit_id), state.calls.iteration_count)
        self._write("DEL", log)
        if state.calls.log:
            self._write("RPUSH", log, *map(dump, state.calls.log))
        self._write("SADD", self._key("circuit:active"), state.circuit_id)

    def _reservations(self) -> dict[str, Reservation]:
        key = self._key("budget:reservations")
        return self._read(
            key, lambda: {i: load(Reservation, text) for i, text in self._pipe.hgetall(key).items()}
        )

    def reservations(self) -> list[Reservation]:
        """Every reservation, whosever."""
        return list(self._reservations().values())

    def reservation(self, reservation_id: str) -> Reservation | None:
        return self._reservations().get(reservation_id)

    def put_reservation(self, reservation: Reservation) -> None:
        self._reservations()[reservation.reservation_id] = reservation
        key = self._key("budget:reservations")
        self._write("HSET", key, reservation.reservation_id, dump(reservation))

    def drop_reservation(self, reservation_id: str) -> None:
        self._reservations().pop(reservation_id, None)
        self._write("HDEL", self._key("budget:reservations"), reservation_id)

    def _append(self, name: str, owner: str, entry: Alert | Incident) -> None:
        """Add to a list that keeps its newest entries; its owner is in the list."""
        key = self._key(name, owner)
        self._write("RPUSH", key, dump(entry))
        self._write("LTRIM", key, -self._evidence_max, -1)

    def add_alert(self, alert: Alert) -> None:
        self._append("budget:alerts", alert.budget_id, alert)
        self._write("SADD", self._key("budget:alerted"), alert.budget_id)

    def acknowledge_alert(self, alert_id: str) -> Alert | None:
        alerted = self._key("budget:alerted")
        for owner in self._read(alerted, lambda: sorted(self._pipe.smembers(alerted))):
            key = self._key("budget:alerts", owner)
            self._pipe.watch(key)
            for index, text in enumerate(self._pipe.lrange(key, 0, -1)):
                if (alert := load(Alert, text)).alert_id == alert_id:
                    alert = replace(alert, acknowledged=True)
                    self._write("LSET", key, index, dump(alert))
                    return alert
        return None

    def add_incident(self, incident: Incident) -> None:
        self._append("circuit:incidents", incident.circuit_id, incident)
        self._write("SADD", self._key("circuit:active"), incident.circuit_id)

    def memo(self, key: str) -> dict[str, Any] | None:
        name = self._key("memo", key)
        text = self._read(name, lambda: self._pipe.get(name))
        found = parsed(text) if text else None
        return found if isinstance(found, dict) else None

    def put_memo(self, key: str, value: dict[str, Any]) -> None:
        name = self._key("memo", key)
        self._seen[name] = dump(value)
        self._write("SET", name, self._seen[name])


class RedisStore:
    """`LimitsStore` over a Redis server."""

    def __init__(
        self,
        url: str,
        database: Database,
        *,
        prefix: str = DEFAULT_PREFIX,
        ttl_s: int = 86_400,
        answer_s: float = ANSWER_S,
        operation_s: float = OPERATION_S,
        evidence_max: int = EVIDENCE_KEPT,
    ) -> None:
        """Connect at the first use. `database` holds the debts; `evidence_max` is as in `SqliteStore`.

        A server is out of reach if an answer takes longer than `answer_s`, or other writers keep a transaction from
        its end for longer than `operation_s`.
        """
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                decode_responses=True,
                socket_timeout=answer_s,
                socket_connect_timeout=answer_s,
                retry=Retry(NoBackoff(), 0),  # a reply that was lost would otherwise count an amount again
            )
        except ValueError as error:
            raise WrongUsage(f"budget.store: {error}", hint="redis://HOST:PORT/DB") from error
        where = self._client.connection_pool.connection_kwargs
        self._where = where.get("path") or f"{where.get('host', 'localhost')}:{where.get('port', 6379)}"
        self._prefix = prefix
        self.ttl_s = ttl_s
        self.evidence_max = evidence_max
        self._operation_s = operation_s
        self.database = database

    def key(self, *parts: str) -> str:
        """The name of something under the prefix."""
        return ":".join((self._prefix, *parts))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError, UnicodeDecodeError, UnreadableRecord) as error:
            raise StoreUnreachable(f"the limits' store at {self._where}: {error}") from error

    def atomically(self, work: Callable[[Rows], T]) -> T:
        """`work` under WATCH, again where another writer came between, as long as an operation may take."""
        until = time.monotonic() + self._operation_s
        while time.monotonic() < until:
            with self._reached(), self._client.pipeline() as pipe, suppress(redis.WatchError):
                rows = RedisRows(self, pipe)
                result = work(rows)
                rows.commit()
                return result
        raise StoreUnreachable(f"the limits' store at {self._where} took more than {self._operation_s:g} s")

    # reading

    def budgets(self, budget_id: str | None = None) -> list[BudgetState]:
        with self._reached():
            ids = [budget_id] if budget_id else self._members("budget:active", "budget:state")
        found = self.atomically(lambda rows: [rows.budget(i) for i in ids])
        return [state for state in found if state is not None]

    def circuits(self) -> list[CircuitState]:
        with self._reached():
            ids = self._members("circuit:active", "circuit:state", "circuit:incidents")
        found = self.atomically(lambda rows: [rows.circuit(i) for i in ids])
        return [c for c in found if c is not None]

    def _members(self, name: str, *parts: str) -> list[str]:
        """The names in a set that some key stands for still; the others have expired and are taken out."""
        there: list[str] = []
        for member in sorted(self._client.smembers(self.key(name))):
            if self._client.exists(*(self.key(part, member) for part in parts)):
                there.append(member)
            else:
                self._client.srem(self.key(name), member)
        return there

    def _lists(self, kind: type[V], name: str, owners: list[str]) -> list[V]:
        texts = (text for owner in owners for text in self._client.lrange(self.key(name, owner), 0, -1))
        return [load(kind, text) for text in texts]

    def alerts(self, budget_id: str | None = None, acknowledged: bool | None = None) -> list[Alert]:
        with self._reached():
            owners = [budget_id] if budget_id else self._members("budget:alerted", "budget:alerts")
            found = sorted(self._lists(Alert, "budget:alerts", owners), key=lambda a: a.timestamp)
        return [a for a in found if acknowledged in (None, a.acknowledged)]

    def incidents(self, circuit_id: str | None = None) -> list[Incident]:
        with self._reached():
            known = ("circuit:active", "circuit:state", "circuit:incidents")
            owners = [circuit_id] if circuit_id else self._members(*known)
            return sorted(self._lists(Incident, "circuit:incidents", owners), key=lambda i: i.at)

    def spend(self, budget_id: str | None = None) -> list[Spend]:
        with self._reached():
            ids = [budget_id] if budget_id else self._members("budget:active", "budget:state")
            return [s for i in ids for s in _spends(i, self._client.hgetall(self.key("budget:spend", i)))]

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def _flat(fields: Mapping[str, str]) -> list[str]:
    return [part for pair in fields.items() for part in pair]


def _budget(fields: Mapping[str, str], used: str | None) -> BudgetState | None:
    """The budget of a state hash and its counter; None where the hash is not there (any more)."""
    if not fields:
        return None
    values = {name: parsed(text) for name, text in fields.items()}
    spec = {name: values.pop(name) for name in _SPEC & values.keys()}
    return decoded(BudgetState, values | {"spec": spec, "tokens_used": parsed(used or "0")})


def _spends(budget_id: str, fields: Mapping[str, str]) -> Iterator[Spend]:
    by_key: dict[tuple[str, str], dict[str, float]] = {}
    for field, amount in fields.items():
        agent, model, name = decoded(tuple[str, str, str], field.split(SEPARATOR))
        by_key.setdefault((agent, model), {})[name] = load(float, amount)
    for (agent, model), amounts in by_key.items():
        cost = amounts.pop("cost_usd", 0.0)
        whole = {name: int(amount) for name, amount in amounts.items()}
        usage = Usage(*(whole.pop(name, 0) for name in _COUNTS))
        yield Spend(budget_id, agent, model, usage, cost_usd=cost, **whole)
