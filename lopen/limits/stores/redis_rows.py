"""The limits in Redis: keys, fields, and one optimistic transaction over them.

Key layout: `<prefix>:budget:state:<id>` hash, `:budget:usage:<id>` counter, `:budget:spend:<id>` hash,
`:budget:alerts:<id>` list, `:budget:active` set, `:budget:reservations:<session>` hash, `:budget:reserving` set of their sessions, `:budget:dropped:<id>`
and `:circuit:dropped:<id>` hashes with count and total of what their capped lists let go, `:circuit:state:<id>` hash, `:circuit:iterations:<id>` counter, `:circuit:toollog:<id>` list of at most 50,
`:circuit:incidents:<id>` list, `:circuit:active` set, `:memo:<key>` string.
Every key expires after the configured time without a write.
"""

from __future__ import annotations

from lopen.core.quick_stdlib import Value, datetime, dumps, loads
from lopen.limits.budgets.budget import CONFIRMATION, PAUSE, WARNING, BudgetState, Charge
from lopen.limits.circuits.circuit import CircuitState
from lopen.limits.stores.records import EVIDENCE_KEPT, Alert, Incident, Reservation, dump, held_s, load
from lopen.limits.stores.redis_client import Transaction, flat, pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")
    V = TypeVar("V", bound=Value)

SEPARATOR = "\x1f"


class Keys:
    """The names of everything under one prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __call__(self, *parts: str) -> str:
        return ":".join((self.prefix, *parts))


def budget_fields(state: BudgetState) -> dict[str, str]:
    """The state hash: every field but the counter's and the announcements, which are fields of their own."""
    fields = state.fields()
    del fields["tokens_used"], fields["announced"]
    plain = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in fields.items()}
    return {k: str(int(v)) if isinstance(v, bool) else str(v) for k, v in plain.items()}


def announcement(crossing: str) -> str:
    """The hash field whose first writer announces the crossing."""
    return f"announced:{crossing}"


def read_budget(fields: Mapping[str, str], used: str | int | None) -> BudgetState | None:
    """The budget of a state hash and its counter; None where the hash is not there (any more)."""
    if "budget_id" not in fields:
        return None
    if lacking := sorted(BudgetState.required - fields.keys()):
        raise ValueError(f"the budget {fields['budget_id']} is kept without {', '.join(lacking)}")
    values: dict[str, Any] = {n: _typed(n, fields[n]) for n in BudgetState.names if n in fields}
    told = tuple(c for c in (WARNING, CONFIRMATION, PAUSE) if announcement(c) in fields)
    return BudgetState(**values | {"tokens_used": int(used or 0), "announced": told})


def _typed(name: str, text: str) -> Any:
    default = getattr(BudgetState, name, 0 if name == "max_tokens" else "")
    if isinstance(default, datetime):
        return datetime.fromisoformat(text)
    if isinstance(default, bool):
        return text == "1"
    return type(default)(text)


def spend_fields(charge: Charge) -> dict[str, int | float]:
    """Return what a charge adds to the spend hash, by field."""
    head = f"{charge.agent}{SEPARATOR}{charge.model}{SEPARATOR}"
    parts = charge.usage.fields() | {
        "requests": charge.requests,
        "tokens": charge.tokens,
        "cost_usd": charge.cost_usd or 0.0,
        "unpriced_tokens": charge.unpriced_tokens,
    }
    return {head + name: amount for name, amount in parts.items() if amount}


class RedisRows:
    """One view under WATCH; writes are gathered and sent as one MULTI by `commit`."""

    forgets = True

    def __init__(
        self,
        view: Transaction,
        key: Keys,
        ttl_s: int,
        evidence_max: int = EVIDENCE_KEPT,
        in_time: Callable[[], None] = lambda: None,
        copy_of: Callable[[str], BudgetState | None] = lambda _budget_id: None,
    ) -> None:
        """`in_time` is called before the server is, and raises out of time; `copy_of` tells a budget that the server lacks."""
        self._view = view
        self._key = key
        self._ttl = ttl_s
        self._evidence_max = evidence_max
        self._in_time = in_time
        self._copy_of = copy_of
        self._absent: set[str] = set()  # budgets that the server lacks
        self.changed: dict[str, BudgetState] = {}
        self._touched: set[str] = set()
        self._seen: dict[str, Any] = {}

    def _read(self, key: str, read: Callable[[], T]) -> T:
        """Return what lies at `key`, as this transaction left it."""
        if key not in self._seen:
            self._in_time()
            self._view.watch(key)
            self._seen[key] = read()
        found: T = self._seen[key]
        return found

    def _write(self, command: str, key: str, *parts: str | int | float) -> None:
        self._view.write(command, key, *parts)
        self._touched.add(key)

    def commit(self) -> None:
        """Send it all; Conflict where another writer came between."""
        for key in sorted(self._touched):
            self._view.write("EXPIRE", key, self._ttl)
        if self._touched:
            self._in_time()
        self._view.commit()

    # budgets

    def budget(self, budget_id: str) -> BudgetState | None:
        state, usage = self._key("budget:state", budget_id), self._key("budget:usage", budget_id)

        def read() -> BudgetState | None:
            self._view.watch(usage)
            found = read_budget(pairs(self._view.read("HGETALL", state)), self._view.read("GET", usage))
            if found is not None:
                return found
            self._absent.add(budget_id)
            return self._copy_of(budget_id)

        return self._read(state, read)

    def put_budget(self, state: BudgetState) -> None:
        key, usage = self._key("budget:state", state.budget_id), self._key("budget:usage", state.budget_id)
        before = self.budget(state.budget_id)
        added = state.tokens_used - (before.tokens_used if before else 0)
        known = set(before.announced if before else ())
        fields: dict[str, str] = budget_fields(state)
        fields |= {announcement(c): "1" for c in state.announced}
        gone = [announcement(c) for c in known - set(state.announced)]
        self._seen[key] = self.changed[state.budget_id] = state
        self._write("HSET", key, *flat(fields))
        if gone:
            self._write("HDEL", key, *gone)
        absent = state.budget_id in self._absent  # its counter may outlive it by an instant
        self._write("SET" if absent else "INCRBY", usage, state.tokens_used if absent else added)
        self._absent.discard(state.budget_id)
        self._write("SADD", self._key("budget:active"), state.budget_id)

    def add_spend(self, budget_id: str, charge: Charge) -> None:
        key = self._key("budget:spend", budget_id)
        for name, amount in spend_fields(charge).items():
            self._write("HINCRBYFLOAT", key, name, amount)

    def drop_spend(self, budget_id: str) -> None:
        self._view.write("DEL", self._key("budget:spend", budget_id))

    # circuits

    def circuit(self, circuit_id: str) -> CircuitState | None:
        key = self._key("circuit:state", circuit_id)
        return self._read(key, lambda: self._read_circuit(circuit_id, self._view.read("HGET", key, "body")))

    def _read_circuit(self, circuit_id: str, body: str | None) -> CircuitState | None:
        if body is None:
            return None
        log = self._view.read("LRANGE", self._key("circuit:toollog", circuit_id), 0, -1)
        count = self._view.read("GET", self._key("circuit:iterations", circuit_id))
        state = load(CircuitState, body)
        calls = state.calls.replace(history=tuple(log), iteration_count=int(count or 0))
        return state.replace(calls=calls)

    def put_circuit(self, state: CircuitState) -> None:
        circuit_id = state.circuit_id
        before = self.circuit(circuit_id)
        key, log = self._key("circuit:state", circuit_id), self._key("circuit:toollog", circuit_id)
        count, active = self._key("circuit:iterations", circuit_id), self._key("circuit:active")
        calls = state.calls
        fields = {name: str(getattr(state, name)) for name in ("circuit_id", "state", "rule", "trip_reason")}
        fields |= {name: str(getattr(calls, name)) for name in ("duplicate_call_count", "last_tool_call")}
        fields["body"] = dump(state.replace(calls=calls.replace(history=())))
        self._seen[key] = state
        self._write("HSET", key, *flat(fields))
        self._write("SET", count, calls.iteration_count)
        self._write("SADD", active, circuit_id)
        for entry in _appended(before.calls.history if before else (), calls.history):
            self._write("RPUSH", log, entry)
        kept = max(1, len(calls.history))
        self._write("LTRIM", log, -kept, -1)

    def add_incident(self, incident: Incident) -> None:
        key, owner = self._key("circuit:incidents", incident.circuit_id), incident.circuit_id
        self._capped(key, incident, self._key("circuit:dropped", owner), held_s)
        self._write("SADD", self._key("circuit:active"), owner)

    def _capped(self, key: str, entry: V, dropped: str, measure: Callable[[V], float]) -> None:
        """Add to a list; of what falls out of it count and total stay."""
        kind = type(entry)
        before: list[V] = self._read(
            key, lambda: [load(kind, text) for text in self._view.read("LRANGE", key, 0, -1)]
        )
        entries: list[V] = [*before, entry]
        gone: list[V] = entries[: -self._evidence_max]
        self._seen[key] = entries[len(gone) :]
        self._write("RPUSH", key, dump(entry))
        if gone:
            total = sum(measure(each) for each in gone)
            self._write("LTRIM", key, len(gone), -1)
            self._write("HINCRBY", dropped, "count", len(gone))
            self._write("HINCRBYFLOAT", dropped, "total", total)

    # reservations

    def reservations(self, session: str) -> list[Reservation]:
        key = self._key("budget:reservations", session)
        found = self._read(
            key,
            lambda: {k: load(Reservation, v) for k, v in pairs(self._view.read("HGETALL", key)).items()},
        )
        return list(found.values())

    def promised(self) -> list[Reservation]:
        """Every reservation, whosever; sessions that have none left are forgotten."""
        key = self._key("budget:reserving")
        sessions = self._read(key, lambda: sorted(self._view.read("SMEMBERS", key)))
        found = {session: self.reservations(session) for session in sessions}
        if gone := [session for session, theirs in found.items() if not theirs]:
            self._write("SREM", key, *gone)
        return [each for theirs in found.values() for each in theirs]

    def reservation(self, session: str, reservation_id: str) -> Reservation | None:
        return next((r for r in self.reservations(session) if r.reservation_id == reservation_id), None)

    def put_reservation(self, reservation: Reservation) -> None:
        key, name = self._key("budget:reservations", reservation.session), reservation.reservation_id
        self.reservations(reservation.session)
        self._seen[key] = self._seen[key] | {name: reservation}
        self._write("HSET", key, name, dump(reservation))
        self._write("SADD", self._key("budget:reserving"), reservation.session)

    def drop_reservation(self, reservation: Reservation) -> None:
        key, name = self._key("budget:reservations", reservation.session), reservation.reservation_id
        self.reservations(reservation.session)
        self._seen[key] = {k: v for k, v in self._seen[key].items() if k != name}
        self._write("HDEL", key, name)

    # alerts and memos

    def add_alert(self, alert: Alert) -> None:
        key, owner = self._key("budget:alerts", alert.budget_id), alert.budget_id
        self._capped(key, alert, self._key("budget:dropped", owner), lambda a: a.utilization)
        self._write("SADD", self._key("budget:alerted"), owner)

    def alert(self, alert_id: str) -> Alert | None:
        key = self._key("budget:alerted")
        ids = self._read(key, lambda: sorted(self._view.read("SMEMBERS", key)))
        return next((a for i in ids for a in self._alerts(i) if a.alert_id == alert_id), None)

    def _alerts(self, budget_id: str) -> list[Alert]:
        key = self._key("budget:alerts", budget_id)
        return self._read(key, lambda: [load(Alert, text) for text in self._view.read("LRANGE", key, 0, -1)])

    def acknowledge_alert(self, alert: Alert) -> None:
        key = self._key("budget:alerts", alert.budget_id)
        index = next(i for i, a in enumerate(self._alerts(alert.budget_id)) if a.alert_id == alert.alert_id)
        self._write("LSET", key, index, dump(alert.replace(acknowledged=True)))

    def memo(self, key: str) -> dict[str, Any] | None:
        name = self._key("memo", key)
        text = self._read(name, lambda: self._view.read("GET", name))
        found = loads(text) if text else None
        return found if isinstance(found, dict) else None

    def put_memo(self, key: str, value: dict[str, Any]) -> None:
        name, text = self._key("memo", key), dumps(value)
        self._view.watch(name)
        self._seen[name] = text
        self._write("SET", name, text)


def _appended(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Return what was added at the end; the list never loses entries but by its cap."""
    if after == before:
        return ()
    if after[:-1] == before[-(len(after) - 1) :] or after[:-1] == before:
        return after[-1:]
    return after
