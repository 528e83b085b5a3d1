"""What could not be counted while the store was gone, kept in memory until it is back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from lopen.limits.budget import BudgetSpec, BudgetState, Charge
from lopen.limits.charging import charge_all, open_all, release
from lopen.limits.outage import StoreUnreachable
from lopen.limits.records import Alert, Reservation
from lopen.limits.store import LimitsStore, Rows
from lopen.limits.value import Value

RETRY_S = 5.0  # a store that is gone is not asked again before


class Debt(Value):
    """A charge that waits, with the promise that it settles.

    `sure`: the promise was certainly made, so that one that is gone means that it was settled already.
    """

    specs: tuple[BudgetSpec, ...]
    charge: Charge
    reservation: Reservation | None = None
    sure: bool = True


Charged = list[tuple[BudgetState, tuple[Alert, ...]]]


def settle(rows: Rows, debt: Debt, now: datetime) -> Charged:
    """Charge what was promised; a second try after a lost reply charges nothing."""
    charged = [spec.budget_id for spec in debt.specs]
    promised = debt.reservation
    if promised is not None and not release(rows, promised, keep=charged):
        if debt.sure:
            return []
        promised = None
    return charge_all(rows, debt.specs, debt.charge, now, promised)


class Debts:
    """Charges in the order in which they were made. `warn` is called once an outage, and once at its end."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._owed: list[Debt] = []
        self._warn = warn
        self._gone = False
        self._retry_at = 0.0

    def outage(self, error: StoreUnreachable, now: float) -> None:
        """The store did not answer; `now` is monotonic."""
        self._retry_at = now + RETRY_S
        if not self._gone:
            self._gone = True
            self._warn(f"{error.message}; work goes on, what is used is counted when the store is back")

    @property
    def gone(self) -> bool:
        """The store did not answer the last time."""
        return self._gone

    def resting(self, now: float) -> bool:
        """The store was gone a moment ago: not to be asked yet."""
        return self._gone and now < self._retry_at

    def owe(self, debt: Debt) -> None:
        """Remember a charge."""
        self._owed.append(debt)

    def tokens(self) -> int:
        """Tokens that wait to be counted."""
        return sum(debt.charge.tokens for debt in self._owed)

    def pay(self, store: LimitsStore, known: dict[str, int], now: datetime) -> tuple[Alert, ...]:
        """Count everything that waits. `known`: the last totals seen, for a store that came back empty."""
        alerts: list[Alert] = []
        while self._owed:
            for state, raised in store.atomically(partial(_paid, self._owed[0], known, now)):
                known[state.budget_id] = state.tokens_used
                alerts += raised
            self._owed.pop(0)
        if self._gone:
            self._gone = False
            self._warn("the limits' store is back; what was used meanwhile is counted")
        return tuple(alerts)


def _paid(debt: Debt, known: dict[str, int], now: datetime, rows: Rows) -> Charged:
    forgotten = rows.budget(debt.specs[0].budget_id) is None  # the store came back empty: no promise is there
    open_all(rows, debt.specs, now, known)
    return settle(rows, debt.replace(sure=debt.sure and not forgotten), now)
