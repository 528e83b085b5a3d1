"""The limits' store in `.lopen/state.db`: one durable transaction for whatever changes together.

It joins the transaction of whoever has one open, so that a turn's record and its charge cost one fsync.
"""

from __future__ import annotations

from lopen.core.errors import LopenError, StoreUnreachable
from lopen.core.quick_sqlite import sqlite3
from lopen.core.quick_stdlib import Value, dumps, loads
from lopen.limits.budgets.budget import BudgetState, BudgetUsage
from lopen.limits.circuits.circuit import CircuitState
from lopen.limits.stores.records import (
    EVIDENCE_KEPT,
    Alert,
    Dropped,
    Incident,
    Reservation,
    Spend,
    dump,
    load,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from typing import Any, Protocol, TypeVar

    from lopen.limits.budgets.budget import BudgetSpec, Charge
    from lopen.limits.stores.store import Rows

    T = TypeVar("T")
    V = TypeVar("V", bound=Value)
    Known = dict[tuple[type[Value], str], tuple[str, Value]]

    class Transactions(Protocol):
        """The part that is needed of `lopen.store.database.Database`."""

        @property
        def connection(self) -> sqlite3.Connection: ...
        def transaction(self) -> AbstractContextManager[sqlite3.Connection]: ...
        def close(self) -> None: ...


KNOWN_ROWS = 16
_SPEND = """INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
    requests = requests + excluded.requests,
    tokens = tokens + excluded.tokens,
    cost_usd = cost_usd + excluded.cost_usd,
    unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens"""


class SqliteRows:
    """The rows inside one transaction. `known`: rows as they were last seen, by key, with what they say."""

    forgets = False

    def __init__(self, connection: sqlite3.Connection, known: Known, evidence_max: int) -> None:
        self._connection = connection
        self._known = known
        self._evidence_max = evidence_max

    def _one(self, kind: type[V], sql: str, *key: str) -> V | None:
        row = self._connection.execute(sql, key).fetchone()
        return load(kind, row[0]) if row else None

    def _body(self, kind: type[V], sql: str, key: str) -> V | None:
        """As `_one`; a row that still reads as it was last seen is not taken apart again."""
        row = self._connection.execute(sql, (key,)).fetchone()
        if row is None:
            return None
        text, value = self._known.get((kind, key), ("", None))
        if text != row[0] or not isinstance(value, kind):
            value = load(kind, row[0])
            self._see(key, row[0], value)
        return value

    def _see(self, key: str, text: str, value: Value) -> None:
        if len(self._known) >= KNOWN_ROWS:
            self._known.clear()
        self._known[type(value), key] = (text, value)

    def budget(self, budget_id: str) -> BudgetState | None:
        return self._body(BudgetState, "SELECT body FROM budgets WHERE budget_id = ?", budget_id)

    def put_budget(self, state: BudgetState) -> None:
        text = dump(state)
        self._connection.execute(
            "INSERT INTO budgets VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET last_updated = excluded.last_updated, body = excluded.body",
            (state.budget_id, state.last_updated.isoformat(), text),
        )
        self._see(state.budget_id, text, state)

    def add_spend(self, budget_id: str, charge: Charge) -> None:
        counted = (charge.requests, charge.tokens, charge.cost_usd or 0.0, charge.unpriced_tokens)
        key = (budget_id, charge.agent, charge.model)
        self._connection.execute(_SPEND, (*key, *charge.usage.fields().values(), *counted))

    def drop_spend(self, budget_id: str) -> None:
        """Nothing was spent of this budget; the running totals keep it."""
        from lopen.store.archives import add_spend_to_totals

        add_spend_to_totals(self._connection, budget_id)

    def circuit(self, circuit_id: str) -> CircuitState | None:
        return self._body(CircuitState, "SELECT body FROM circuits WHERE circuit_id = ?", circuit_id)

    def put_circuit(self, state: CircuitState) -> None:
        text = dump(state)
        self._connection.execute(
            "INSERT INTO circuits VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
            (state.circuit_id, text),
        )
        self._see(state.circuit_id, text, state)

    def reservations(self, session: str) -> list[Reservation]:
        rows = self._connection.execute("SELECT body FROM reservations WHERE session = ?", (session,))
        return [load(Reservation, row[0]) for row in rows]

    def promised(self) -> list[Reservation]:
        """Every reservation, whosever."""
        return [
            load(Reservation, row[0]) for row in self._connection.execute("SELECT body FROM reservations")
        ]

    def reservation(self, session: str, reservation_id: str) -> Reservation | None:
        sql = "SELECT body FROM reservations WHERE session = ? AND reservation_id = ?"
        return self._one(Reservation, sql, session, reservation_id)

    def put_reservation(self, reservation: Reservation) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO reservations VALUES (?, ?, ?)",
            (reservation.reservation_id, reservation.session, dump(reservation)),
        )

    def drop_reservation(self, reservation: Reservation) -> None:
        self._connection.execute(
            "DELETE FROM reservations WHERE reservation_id = ?", (reservation.reservation_id,)
        )

    def add_alert(self, alert: Alert) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO alerts (alert_id, budget_id, acknowledged, body) VALUES (?, ?, ?, ?)",
            (alert.alert_id, alert.budget_id, alert.acknowledged, dump(alert)),
        )
        self._cap("alerts", alert.budget_id)

    def _cap(self, name: str, owner: str) -> None:
        from lopen.store.segments import trim  # alerts and incidents are rare, and hooks are in a hurry

        trim(self._connection, name, owner, self._evidence_max)

    def alert(self, alert_id: str) -> Alert | None:
        return self._one(Alert, "SELECT body FROM alerts WHERE alert_id = ?", alert_id)

    def acknowledge_alert(self, alert: Alert) -> None:
        self._connection.execute(
            "UPDATE alerts SET acknowledged = 1, body = ? WHERE alert_id = ?",
            (dump(alert.replace(acknowledged=True)), alert.alert_id),
        )

    def add_incident(self, incident: Incident) -> None:
        self._connection.execute(
            "INSERT INTO incidents (circuit_id, body) VALUES (?, ?)", (incident.circuit_id, dump(incident))
        )
        self._cap("incidents", incident.circuit_id)

    def memo(self, key: str) -> dict[str, Any] | None:
        row = self._connection.execute("SELECT body FROM memos WHERE key = ?", (key,)).fetchone()
        found = loads(row[0]) if row else None
        return found if isinstance(found, dict) else None

    def put_memo(self, key: str, value: dict[str, Any]) -> None:
        self._connection.execute(
            "INSERT INTO memos VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
            (key, dumps(value)),
        )


class SqliteStore:
    """`LimitsStore` over a `Database`."""

    def __init__(self, database: Transactions, *, evidence_max: int = EVIDENCE_KEPT) -> None:
        """`evidence_max`: alerts of a budget and incidents of a circuit that are kept; older ones are summed up."""
        self._database = database
        self._evidence_max = evidence_max
        self._known: Known = {}

    def atomically(self, work: Callable[[Rows], T]) -> T:
        """`work` in one transaction, or inside the one that is already open."""
        return self._reached(lambda: self._transacted(work))

    def _transacted(self, work: Callable[[Rows], T]) -> T:
        with self._database.transaction() as connection:
            return work(SqliteRows(connection, self._known, self._evidence_max))

    def _reached(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (sqlite3.Error, ValueError) as error:
            raise StoreUnreachable(f"the limits' store: {error}") from error
        except LopenError as error:
            from lopen.core.errors import StorageError  # heavy, and only wanted when it failed

            if isinstance(error, StorageError):
                raise StoreUnreachable(error.message, hint=error.hint) from error
            raise

    def record(
        self,
        specs: Sequence[BudgetSpec],
        charge: Charge,
        now: datetime,
        promised: Reservation | None = None,
        *,
        sure: bool = True,
    ) -> list[tuple[BudgetState, tuple[Alert, ...]]]:
        """See `LimitsStore.record`."""
        from lopen.limits.budgets.charging import settle  # hooks charge in a transaction of their own

        return self.atomically(lambda rows: settle(rows, specs, charge, now, promised, sure=sure))

    def _all(self, kind: type[V], sql: str, *values: object) -> list[V]:
        def read() -> list[V]:
            return [load(kind, row[0]) for row in self._database.connection.execute(sql, values)]

        return self._reached(read)

    def budgets(
        self, budget_id: str | None = None, *, offset: int = 0, limit: int | None = None
    ) -> list[BudgetState]:
        where = "" if budget_id is None else "WHERE budget_id = ?3"
        sql = f"SELECT body FROM budgets {where} ORDER BY budget_id LIMIT ?1 OFFSET ?2"  # noqa: S608 - fixed words only
        return self._all(
            BudgetState, sql, -1 if limit is None else limit, offset, *([budget_id] if where else ())
        )

    def budget_count(self) -> int:
        sql = "SELECT count(*) FROM budgets"
        return self._reached(lambda: int(self._database.connection.execute(sql).fetchone()[0]))

    def circuits(self) -> list[CircuitState]:
        return self._all(CircuitState, "SELECT body FROM circuits ORDER BY circuit_id")

    def alerts(self, budget_id: str | None = None, acknowledged: bool | None = None) -> list[Alert]:
        return self._all(
            Alert,
            "SELECT body FROM alerts WHERE (?1 IS NULL OR budget_id = ?1)"
            " AND (?2 IS NULL OR acknowledged = ?2) ORDER BY seq",
            budget_id,
            acknowledged,
        )

    def incidents(self, circuit_id: str | None = None) -> list[Incident]:
        sql = "SELECT body FROM incidents WHERE (?1 IS NULL OR circuit_id = ?1) ORDER BY seq"
        return self._all(Incident, sql, circuit_id)

    def dropped(self) -> list[Dropped]:
        def read() -> list[Dropped]:
            rows = self._database.connection.execute(
                "SELECT list, owner, count, total FROM dropped WHERE list IN ('alerts', 'incidents')"
            )
            return [Dropped(*row) for row in map(tuple, rows)]

        return self._reached(read)

    def spend(self, budget_id: str | None = None) -> list[Spend]:
        def read() -> list[Spend]:
            sql = "SELECT * FROM spend WHERE (?1 IS NULL OR budget_id = ?1)"
            rows = self._database.connection.execute(sql, (budget_id,))
            return [_spend(tuple(row)) for row in rows]

        return self._reached(read)

    def close(self) -> None:
        """The database belongs to whoever opened it."""


def _spend(row: tuple[Any, ...]) -> Spend:
    budget_id, agent, model, *rest = row
    return Spend(budget_id, agent, model, BudgetUsage(*rest[:4]), *rest[4:])
