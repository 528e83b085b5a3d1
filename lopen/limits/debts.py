"""Charges that could not be counted while the store was gone, kept until it is back.

Where the store lies elsewhere (Redis), they are also kept in `state.db`, in the transaction that records the turn: a
process that ends before the store is back loses nothing, the next one of the project pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from lopen.core.errors import StoreUnreachable
from lopen.limits.agents import AgentLimits
from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.charging import Charged, charge_external, open_all, release, settle
from lopen.limits.records import Alert, Reservation, dump, load
from lopen.limits.store import LimitsStore, Rows
from lopen.store.database import Database

RETRY_S = 5.0  # a store that is gone is not asked again before
KEPT = "debt:"


@dataclass(frozen=True, slots=True)
class Debt:
    """A charge that waits, with the promise that it settles; a charge of nothing only gives the promise back.

    `sure`: the promise was certainly made, so that one that is gone means that it was settled already.
    """

    specs: tuple[BudgetSpec, ...]
    charge: Charge
    reservation: Reservation
    sure: bool = True


class Debts:
    """A session's debts, and those that earlier processes left. `warn` is called once an outage, and once at its end."""

    def __init__(
        self, database: Database | None, limits: AgentLimits, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """`database` keeps the debts of a store that lies elsewhere; None for a store that lies in it."""
        self._database = database
        self._limits = limits
        self._warn = warn
        self._owed = list(self._stored())
        self._gone = False
        self._retry_at = 0.0

    def _stored(self) -> Iterator[Debt]:
        if self._database is None:
            return
        sql = "SELECT body FROM memos WHERE key >= 'debt:' AND key < 'debt;' ORDER BY key"
        for row in self._database.connection.execute(sql).fetchall():
            try:
                yield load(Debt, str(row["body"]))
            except ValueError:  # of another version: it cannot be charged
                continue

    def outage(self, error: StoreUnreachable, now: float) -> None:
        """The store did not answer; `now` is monotonic."""
        self._retry_at = now + RETRY_S
        if not self._gone:
            self._gone = True
            self._warn(f"{error.message}; work goes on, what is used is counted when the store is back")

    def resting(self, now: float) -> bool:
        """The store was gone a moment ago: not to be asked yet."""
        return self._gone and now < self._retry_at

    def wake(self) -> None:
        """Ask a store that was gone a moment ago at once."""
        self._retry_at = 0.0

    def owe(self, debt: Debt) -> None:
        """Remember a charge, once; part of the transaction around it."""
        name = debt.reservation.reservation_id
        if all(owed.reservation.reservation_id != name for owed in self._owed):
            self._owed.append(debt)
        if self._database is not None:
            self._database.write("INSERT OR REPLACE INTO memos VALUES (?, ?)", (KEPT + name, dump(debt)))

    @property
    def due(self) -> bool:
        """There is something to pay, or an outage whose end is to be told."""
        return bool(self._owed) or self._gone

    def cost_usd(self, session: str) -> float:
        """Return the cost of a session's debts in USD; models without a known price cost nothing."""
        return sum(d.charge.cost_usd or 0.0 for d in self._owed if d.reservation.session == session)

    def pay(self, store: LimitsStore, now: datetime) -> tuple[Alert, ...]:
        """Count everything that waits, each once, whoever else pays it at the same time."""
        alerts: list[Alert] = []
        while self._owed:
            debt = self._owed[0]
            charged, spent = store.atomically(partial(_paid, debt, self._limits, now))
            alerts += [*(a for _, raised in charged for a in raised), *spent]
            if self._database is not None:
                name = KEPT + debt.reservation.reservation_id
                self._database.write("DELETE FROM memos WHERE key = ?", (name,))
            self._owed.pop(0)
        if self._gone:
            store.atomically(lambda rows: rows.memo(KEPT))  # where nothing was owed, it was not asked yet
            self._gone = False
            self._warn("the limits' store is back; what was used meanwhile is counted")
        return tuple(alerts)


def _paid(debt: Debt, limits: AgentLimits, now: datetime, rows: Rows) -> tuple[Charged, tuple[Alert, ...]]:
    if debt.charge == Charge(0):
        release(rows, debt.reservation)
        return [], ()
    open_all(rows, debt.specs, now)
    charged = settle(rows, debt.specs, debt.charge, now, debt.reservation, sure=debt.sure)
    circuit_id = f"session:{debt.reservation.session}"
    return charged, charge_external(rows, circuit_id, debt.charge, limits, now) if charged else ()
