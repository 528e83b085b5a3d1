"""The limits' store in Redis.

Usage counters are incremented in one script on the server, so that no increment is lost and none is made
twice; everything else changes under WATCH.
"""

from __future__ import annotations

import time

from lopen.core.errors import StoreUnreachable, WrongUsage
from lopen.core.quick_stdlib import datetime, dumps, loads
from lopen.limits.budgets.budget import BudgetState, BudgetUsage, due
from lopen.limits.budgets.charging import PAID, settle
from lopen.limits.circuits.circuit import CircuitState
from lopen.limits.stores.records import (
    EVIDENCE_KEPT,
    Alert,
    Dropped,
    Incident,
    Reservation,
    Spend,
    load,
)
from lopen.limits.stores.redis_client import (
    Address,
    Conflict,
    RedisClient,
    RedisError,
    Transaction,
    pairs,
)
from lopen.limits.stores.redis_rows import SEPARATOR, Keys, RedisRows, announcement, read_budget, spend_fields
from lopen.limits.stores.redis_scripts import CHARGE, PRUNE
from lopen.limits.texts import budget_alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from lopen.limits.budgets.budget import BudgetSpec, Charge
    from lopen.limits.stores.budget_copies import BudgetCopies
    from lopen.limits.stores.store import Rows

    T = TypeVar("T")

ANSWER_S = 1.0  # a Redis that takes longer for one answer is treated as gone
OPERATION_S = 2.0  # and one that takes longer for all that changes together, other writers' turns included


class RedisStore:
    """`LimitsStore` over a Redis server."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "lopen",
        ttl_s: int = 86_400,
        answer_s: float = ANSWER_S,
        operation_s: float = OPERATION_S,
        evidence_max: int = EVIDENCE_KEPT,
        copies: BudgetCopies | None = None,
    ) -> None:
        """`answer_s`, `operation_s`: a server that takes longer for an answer, or for a whole operation, is gone.

        `evidence_max`: see `SqliteStore`. `copies`: where budgets outlive their expiry; None: nowhere."""
        try:
            address = Address(url)
        except ValueError as error:
            raise WrongUsage(f"budget.store: {error}", hint="redis://HOST:PORT/DB") from error
        self._where = str(address)
        self._client = RedisClient(address, answer_s)
        self._key = Keys(prefix)
        self._ttl = ttl_s
        self._evidence_max = evidence_max
        self._copies: Callable[[str | None], dict[str, BudgetState]] = (
            copies.all if copies else lambda _id: {}
        )
        self._copy_of: Callable[[str], BudgetState | None] = copies.find if copies else lambda _id: None
        self._copy: Callable[[Iterable[BudgetState]], None] = copies.keep if copies else lambda _states: None
        self._operation_s = operation_s

    def _reached(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (RedisError, OSError, ValueError) as error:
            raise StoreUnreachable(f"the limits' store at {self._where}: {error}") from error

    def atomically(self, work: Callable[[Rows], T]) -> T:
        """`work` under WATCH, again where another writer came between, as long as an operation may take."""
        return self._reached(lambda: self._transacted(work, self._deadline()))

    def _deadline(self) -> Callable[[], None]:
        """Raises once an operation that begins now has taken too long."""
        until = time.monotonic() + self._operation_s

        def in_time() -> None:
            if time.monotonic() >= until:
                raise StoreUnreachable(
                    f"the limits' store at {self._where} took more than {self._operation_s:g} s"
                )

        return in_time

    def _transacted(self, work: Callable[[Rows], T], in_time: Callable[[], None]) -> T:
        while True:
            in_time()
            view = Transaction(self._client)
            rows = RedisRows(view, self._key, self._ttl, self._evidence_max, in_time, self._copy_of)
            try:
                result = work(rows)
                rows.commit()
            except Conflict:
                continue
            except BaseException:
                view.abandon()
                raise
            self._copy(rows.changed.values())
            return result

    def _script(self, script: str, keys: Sequence[str], args: Sequence[str | int | float]) -> Any:
        return self._client("EVAL", script, len(keys), *keys, *args)

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
        in_time = self._deadline()
        parts = ("state", "usage", "spend")
        keys = [self._key(f"budget:{part}", spec.budget_id) for spec in specs for part in parts]
        session, promise, tokens = ("", "", 0)
        if promised is not None:
            session, promise, tokens = promised.session, promised.reservation_id, promised.tokens
        numbers = (charge.tokens, charge.requests, charge.cost_usd or 0.0, charge.unpriced_tokens)
        pairs = [item for pair in spend_fields(charge).items() for item in pair]
        answer = self._script(
            CHARGE,
            [self._key("budget:reservations", session), self._key("memo", PAID + promise), *keys],
            [
                self._ttl,
                promise,
                tokens,
                dumps({"at": now.isoformat()}),
                *numbers,
                now.isoformat(),
                *pairs,
            ],
        )
        if answer is None:
            return self._transacted(
                lambda rows: settle(rows, specs, charge, now, promised, sure=sure), in_time
            )
        states = [_charged(*found) for found in zip(answer[::2], answer[1::2], strict=True)]
        self._copy(state.replace(announced=(*state.announced, *due(state))) for state in states)
        return [
            (state, tuple(a for crossing in due(state) for a in self._claimed(state, crossing, now, in_time)))
            for state in states
        ]

    def _claimed(
        self, state: BudgetState, crossing: str, now: datetime, in_time: Callable[[], None]
    ) -> tuple[Alert, ...]:
        """The alert, if no other writer has announced this crossing; out of time, the next charge raises it."""
        in_time()
        key = self._key("budget:state", state.budget_id)
        if not self._client("HSETNX", key, announcement(crossing), "1"):
            return ()
        alert = budget_alert(state, crossing, now)
        self._transacted(lambda rows: rows.add_alert(alert), self._deadline())  # claimed: nobody else will
        return (alert,)

    def budgets(
        self, budget_id: str | None = None, *, offset: int = 0, limit: int | None = None
    ) -> list[BudgetState]:
        def read() -> list[BudgetState]:
            active, copies = self._members("budget:active"), self._copies(budget_id)
            ids = sorted(i for i in {*active, *copies} if budget_id in (None, i))
            ids = ids[offset : None if limit is None else offset + limit]
            states = self._client.all([("HGETALL", self._key("budget:state", each)) for each in ids])
            usage = self._client.all([("GET", self._key("budget:usage", each)) for each in ids])
            states = [read_budget(pairs(fields), used) for fields, used in zip(states, usage, strict=True)]
            gone = [i for i, state in zip(ids, states, strict=True) if state is None]
            self._forget("budget:active", ("budget:state",), [i for i in gone if i in active])
            found = (state or copies.get(i) for i, state in zip(ids, states, strict=True))
            return [state for state in found if state is not None]

        return self._reached(read)

    def budget_count(self) -> int:
        return self._reached(lambda: len({*self._members("budget:active"), *self._copies(None)}))

    def circuits(self) -> list[CircuitState]:
        ids = self._reached(lambda: sorted(self._members("circuit:active")))
        found = self.atomically(lambda rows: [rows.circuit(i) for i in ids])
        gone = [i for i, circuit in zip(ids, found, strict=True) if circuit is None]
        self._reached(lambda: self._forget("circuit:active", ("circuit:state", "circuit:incidents"), gone))
        return [c for c in found if c is not None]

    def _forget(self, active: str, parts: Sequence[str], ids: Sequence[str]) -> None:
        """Take names out of a set whose keys have expired: it is kept alive by whatever else is in it."""
        for name in ids:
            self._script(PRUNE, [self._key(active), *(self._key(p, name) for p in parts)], [name])

    def _members(self, name: str) -> list[str]:
        found: list[str] = self._client("SMEMBERS", self._key(name))
        return found

    def _entries(self, key: str) -> list[str]:
        found: list[str] = self._client("LRANGE", key, 0, -1)
        return found

    def alerts(self, budget_id: str | None = None, acknowledged: bool | None = None) -> list[Alert]:
        def read() -> list[Alert]:
            ids = [budget_id] if budget_id else self._members("budget:alerted")
            texts = {i: self._entries(self._key("budget:alerts", i)) for i in ids}
            self._forget("budget:alerted", ("budget:alerts",), [i for i, found in texts.items() if not found])
            return [load(Alert, text) for found in texts.values() for text in found]

        found = sorted(self._reached(read), key=lambda a: a.timestamp)
        return [a for a in found if acknowledged in (None, a.acknowledged)]

    def incidents(self, circuit_id: str | None = None) -> list[Incident]:
        def read() -> list[Incident]:
            ids = [circuit_id] if circuit_id else self._members("circuit:active")
            texts = [t for i in ids for t in self._entries(self._key("circuit:incidents", i))]
            return [load(Incident, text) for text in texts]

        return sorted(self._reached(read), key=lambda i: i.at)

    def dropped(self) -> list[Dropped]:
        def read() -> list[Dropped]:
            return [
                found
                for name, known, where in (
                    ("alerts", "alerted", "budget"),
                    ("incidents", "active", "circuit"),
                )
                for owner in self._members(f"{where}:{known}")
                if (found := self._dropped(name, owner, self._key(f"{where}:dropped", owner))) is not None
            ]

        return self._reached(read)

    def _dropped(self, name: str, owner: str, key: str) -> Dropped | None:
        fields = pairs(self._client("HGETALL", key))
        return Dropped(name, owner, int(fields["count"]), float(fields["total"])) if fields else None

    def spend(self, budget_id: str | None = None) -> list[Spend]:
        def read() -> list[Spend]:
            ids = [budget_id] if budget_id else self._members("budget:active")
            found = self._client.all([("HGETALL", self._key("budget:spend", i)) for i in ids])
            return [s for i, each in zip(ids, found, strict=True) for s in _spends(i, pairs(each))]

        return self._reached(read)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def _charged(used: int, fields: str) -> BudgetState:
    """A budget as the script left it: one string is read three times faster than a list."""
    pairs = loads(fields)
    state = read_budget(dict(zip(pairs[::2], pairs[1::2], strict=True)), used)
    if state is None:
        raise ValueError("what was charged is not a budget")
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
        usage = BudgetUsage(**{name: whole.pop(name, 0) for name in BudgetUsage.names})
        spends.append(Spend(budget_id, agent, model, usage, cost_usd=cost, **whole))
    return spends
