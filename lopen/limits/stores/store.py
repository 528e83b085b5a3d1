"""The store's protocol: one view that changes together, and one counter that never loses an increment.

`SqliteStore` (default) and `RedisStore` keep it; the same tests hold both. Every failure of a store is a
`StoreUnreachable`: work goes on, and what could not be counted is counted later.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from lopen.limits.budgets.budget import BudgetSpec, BudgetState, Charge
from lopen.limits.circuits.circuit import CircuitState
from lopen.limits.stores.records import Alert, Dropped, Incident, Reservation, Spend

T = TypeVar("T")


class Rows(Protocol):
    """The rows that work done `atomically` sees: reads show one moment, writes land together or not at all."""

    forgets: bool  # what was written may be gone without anyone's doing

    def budget(self, budget_id: str) -> BudgetState | None: ...
    def put_budget(self, state: BudgetState) -> None: ...
    def add_spend(self, budget_id: str, charge: Charge) -> None: ...
    def drop_spend(self, budget_id: str) -> None: ...
    def circuit(self, circuit_id: str) -> CircuitState | None: ...
    def put_circuit(self, state: CircuitState) -> None: ...
    def reservations(self, session: str) -> list[Reservation]: ...
    def promised(self) -> list[Reservation]: ...
    def reservation(self, session: str, reservation_id: str) -> Reservation | None: ...
    def put_reservation(self, reservation: Reservation) -> None: ...
    def drop_reservation(self, reservation: Reservation) -> None: ...
    def add_alert(self, alert: Alert) -> None: ...
    def alert(self, alert_id: str) -> Alert | None: ...
    def acknowledge_alert(self, alert: Alert) -> None: ...
    def add_incident(self, incident: Incident) -> None: ...
    def memo(self, key: str) -> dict[str, Any] | None: ...
    def put_memo(self, key: str, value: dict[str, Any]) -> None: ...


class LimitsStore(Protocol):
    """Budgets, circuits, alerts, incidents and small memos."""

    def atomically(self, work: Callable[[Rows], T]) -> T:
        """Run `work` on one consistent view; it may be run again where another writer came between."""
        ...

    def record(
        self,
        specs: Sequence[BudgetSpec],
        charge: Charge,
        now: datetime,
        promised: Reservation | None = None,
        *,
        sure: bool = True,
    ) -> list[tuple[BudgetState, tuple[Alert, ...]]]:
        """Add `charge` to every budget, exactly, opening those that are not there; `promised` is given back.

        Each threshold crossed comes back as an alert with the one writer that crossed it first. Nothing is
        added, and nothing comes back, where this promise was settled before; `sure`: it certainly was made.
        """
        ...

    def budgets(
        self, budget_id: str | None = None, *, offset: int = 0, limit: int | None = None
    ) -> list[BudgetState]:
        """In the order of their ids: one, all, or a part of the list."""
        ...

    def budget_count(self) -> int: ...
    def circuits(self) -> list[CircuitState]: ...
    def alerts(self, budget_id: str | None = None, acknowledged: bool | None = None) -> list[Alert]:
        """Oldest first."""
        ...

    def incidents(self, circuit_id: str | None = None) -> list[Incident]:
        """Oldest first; the newest of each circuit are kept."""
        ...

    def dropped(self) -> list[Dropped]:
        """Return what the capped lists let go."""
        ...

    def spend(self, budget_id: str | None = None) -> list[Spend]: ...
    def close(self) -> None: ...
