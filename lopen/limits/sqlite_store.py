"""The limits' store in `.lopen/state.db`: one durable transaction for related changes.

It joins an open transaction, so that a turn's record and its charge cost one fsync.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from lopen.core.errors import StorageError, StoreUnreachable
from lopen.limits.budget import BudgetState, Charge
from lopen.limits.circuits import CircuitState
from lopen.limits.records import (
    EVIDENCE_KEPT,
    Alert,
    Incident,
    Reservation,
    Spend,
    UnreadableRecord,
    dump,
    load,
    parsed,
)
from lopen.limits.store import Rows
from lopen.models.messages import Usage
from lopen.store.caps import ADD_SPEND, add_spend_to_totals, trim
from lopen.store.database import Database

T = TypeVar("T")
V = TypeVar("V")
_INSERT_SPEND = f"INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) {ADD_SPEND}"  # noqa: S608 - fixed words only


class SqliteRows:
    """The rows inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, evidence_max: int) -> None:
        self._connection = connection
        self._evidence_max = evidence_max

    def _one(self, kind: type[V], sql: str, key: str) -> V | None:
        row = self._connection.execute(sql, (key,)).fetchone()
        return load(kind, row[0]) if row else None

    def budget(self, budget_id: str) -> BudgetState | None:
        return self._one(BudgetState, "SELECT body FROM budgets WHERE budget_id = ?", budget_id)

    def put_budget(self, state: BudgetState) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO budgets VALUES (?, ?, ?)",
            (state.budget_id, state.last_updated.isoformat(), dump(state)),
        )

    def add_spend(self, budget_id: str, charge: Charge) -> None:
        counted = (charge.requests, charge.tokens, charge.cost_usd or 0.0, charge.unpriced_tokens)
        key = (budget_id, charge.agent, charge.model)
        self._connection.execute(_INSERT_SPEND, (*key, *charge.usage.counts, *counted))

    def drop_spend(self, budget_id: str) -> None:
        """Nothing was spent of this budget; the running totals keep it."""
        add_spend_to_totals(self._connection, budget_id)

    def circuit(self, circuit_id: str) -> CircuitState | None:
        return self._one(CircuitState, "SELECT body FROM circuits WHERE circuit_id = ?", circuit_id)

    def put_circuit(self, state: CircuitState) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO circuits VALUES (?, ?)", (state.circuit_id, dump(state))
        )

    def reservations(self) -> list[Reservation]:
        """Every reservation, whosever."""
        rows = self._connection.execute("SELECT body FROM reservations")
        return [load(Reservation, row[0]) for row in rows]

    def reservation(self, reservation_id: str) -> Reservation | None:
        return self._one(
            Reservation, "SELECT body FROM reservations WHERE reservation_id = ?", reservation_id
        )

    def put_reservation(self, reservation: Reservation) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO reservations VALUES (?, ?, ?)",
            (reservation.reservation_id, reservation.session, dump(reservation)),
        )

    def drop_reservation(self, reservation_id: str) -> None:
        self._connection.execute("DELETE FROM reservations WHERE reservation_id = ?", (reservation_id,))

    def add_alert(self, alert: Alert) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO alerts (alert_id, budget_id, acknowledged, body) VALUES (?, ?, ?, ?)",
            (alert.alert_id, alert.budget_id, alert.acknowledged, dump(alert)),
        )
        trim(self._connection, "alerts", alert.budget_id, self._evidence_max)

    def acknowledge_alert(self, alert_id: str) -> Alert | None:
        known = self._one(Alert, "SELECT body FROM alerts WHERE alert_id = ?", alert_id)
        alert = known and replace(known, acknowledged=True)
        sql = "UPDATE alerts SET acknowledged = 1, body = ? WHERE alert_id = ?"
        self._connection.execute(sql, (dump(alert), alert_id))
        return alert

    def add_incident(self, incident: Incident) -> None:
        self._connection.execute(
            "INSERT INTO incidents (circuit_id, body) VALUES (?, ?)", (incident.circuit_id, dump(incident))
        )
        trim(self._connection, "incidents", incident.circuit_id, self._evidence_max)

    def memo(self, key: str) -> dict[str, Any] | None:
        row = self._connection.execute("SELECT body FROM memos WHERE key = ?", (key,)).fetchone()
        found = parsed(row[0]) if row else None
        return found if isinstance(found, dict) else None

    def put_memo(self, key: str, value: dict[str, Any]) -> None:
        self._connection.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (key, dump(value)))


class SqliteStore:
    """`LimitsStore` over a `Database`."""

    def __init__(self, database: Database, *, evidence_max: int = EVIDENCE_KEPT) -> None:
        """`evidence_max`: alerts of a budget and incidents of a circuit that are kept; older ones are summed up."""
        self.database = database
        self._evidence_max = evidence_max

    def atomically(self, work: Callable[[Rows], T]) -> T:
        """Run `work` in one transaction, or inside the open one."""
        with _reached(), self.database.transaction() as connection:
            return work(SqliteRows(connection, self._evidence_max))

    def _read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with _reached():
            return [tuple(row) for row in self.database.connection.execute(sql, values)]

    def _all(self, kind: type[V], sql: str, *values: object) -> list[V]:
        with _reached():
            return [load(kind, row[0]) for row in self._read(sql, *values)]

    def budgets(self, budget_id: str | None = None) -> list[BudgetState]:
        sql = "SELECT body FROM budgets WHERE (?1 IS NULL OR budget_id = ?1) ORDER BY budget_id"
        return self._all(BudgetState, sql, budget_id)

    def circuits(self) -> list[CircuitState]:
        return self._all(CircuitState, "SELECT body FROM circuits ORDER BY circuit_id")

    def alerts(self, budget_id: str | None = None, acknowledged: bool | None = None) -> list[Alert]:
        sql = (
            "SELECT body FROM alerts WHERE (?1 IS NULL OR budget_id = ?1)"
            " AND (?2 IS NULL OR acknowledged = ?2) ORDER BY seq"
        )
        return self._all(Alert, sql, budget_id, acknowledged)

    def incidents(self, circuit_id: str | None = None) -> list[Incident]:
        sql = "SELECT body FROM incidents WHERE (?1 IS NULL OR circuit_id = ?1) ORDER BY seq"
        return self._all(Incident, sql, circuit_id)

    def spend(self, budget_id: str | None = None) -> list[Spend]:
        rows = self._read("SELECT * FROM spend WHERE (?1 IS NULL OR budget_id = ?1)", budget_id)
        return [_spend(*row) for row in rows]

    def close(self) -> None:
        """The caller closes the database."""


def _spend(budget_id: str, agent: str, model: str, *counts: Any) -> Spend:
    return Spend(budget_id, agent, model, Usage(*counts[:4]), *counts[4:])


@contextmanager
def _reached() -> Iterator[None]:
    """Raise `StoreUnreachable` for every failure of the database, and for rows that cannot be read."""
    try:
        yield
    except StorageError as error:
        raise StoreUnreachable(error.message, hint=error.hint) from error
    except (sqlite3.Error, UnreadableRecord) as error:
        raise StoreUnreachable(f"the limits' store: {error}") from error
