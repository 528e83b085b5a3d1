"""Charges that could not be counted while the store was gone, kept until it is back.

Where the store lies elsewhere (Redis), it is kept in `state.db`, in the transaction that records the turn: a
process that ends before the store is back loses nothing, the next one of the project pays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from lopen.core.errors import StoreUnreachable
from lopen.core.quick_stdlib import Value
from lopen.limits.answers import used_at_most
from lopen.limits.budgets.budget import BudgetSpec, BudgetState, BudgetUsage, Charge
from lopen.limits.budgets.charging import charge_all, open_all, release, settle
from lopen.limits.budgets.cost import charge_external
from lopen.limits.budgets.scopes import TASK, spec_of
from lopen.limits.circuits.agents import AgentLimits
from lopen.limits.stores.records import Alert, Reservation, dump, from_fields
from lopen.limits.stores.store import LimitsStore, Rows
from lopen.store.database import Database

RETRY_S = 5.0  # a store that is gone is not asked again before
KEPT = "debt:"


class Debt(Value):
    """A charge that waits, with the promise that it settles; a charge of nothing only gives the promise back.

    `sure`: the promise was certainly made, so that one that is gone means that it was settled already.
    """

    specs: tuple[BudgetSpec, ...]
    charge: Charge
    reservation: Reservation
    sure: bool = True


class Ledger(Protocol):
    """Where debts outlive their process."""

    def debts(self) -> Sequence[Debt]: ...
    def keep(self, debt: Debt) -> None: ...
    def strike(self, debt: Debt) -> None: ...


class NoLedger:
    """For a store in `state.db` itself: while that is gone there is nowhere to keep anything."""

    def debts(self) -> Sequence[Debt]:
        return ()

    def keep(self, debt: Debt) -> None:
        """Not kept."""

    def strike(self, debt: Debt) -> None:
        """Was not kept."""


NO_LEDGER = NoLedger()


class DatabaseLedger:
    """In the project's `state.db`, for a store that lies elsewhere."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def debts(self) -> Sequence[Debt]:
        rows = self._database.connection.execute(
            "SELECT body FROM memos WHERE key >= 'debt:' AND key < 'debt;' ORDER BY key"
        ).fetchall()
        return tuple(_readable(str(row["body"]) for row in rows))

    def keep(self, debt: Debt) -> None:
        """Part of the transaction around it."""
        key = KEPT + debt.reservation.reservation_id
        self._database.write("INSERT OR REPLACE INTO memos VALUES (?, ?)", (key, dump(debt)))

    def strike(self, debt: Debt) -> None:
        """It is paid."""
        self._database.write("DELETE FROM memos WHERE key = ?", (KEPT + debt.reservation.reservation_id,))


def _readable(texts: Iterator[str]) -> Iterator[Debt]:
    for text in texts:
        try:
            yield _debt(json.loads(text))
        except (ValueError, TypeError, KeyError):  # of another version: what it says cannot be charged
            continue


def _debt(fields: dict[str, Any]) -> Debt:
    charge = dict(fields["charge"])
    usage = from_fields(BudgetUsage, charge.pop("usage"))
    return Debt(
        tuple(from_fields(BudgetSpec, spec) for spec in fields["specs"]),
        from_fields(Charge, charge).replace(usage=usage),
        from_fields(Reservation, fields["reservation"]),
        bool(fields["sure"]),
    )


def pay(
    store: LimitsStore, ledger: Ledger, debt: Debt, known: dict[str, int], limits: AgentLimits, now: datetime
) -> tuple[Alert, ...]:
    """Count a debt, once, whoever else pays it at the same time. `known`: see `Debts.pay`."""
    charged, dear = store.atomically(partial(_paid, debt, known, limits, now))
    ledger.strike(debt)
    for state, _ in charged:
        known[state.budget_id] = state.tokens_used
    return (*(a for _, alerts in charged for a in alerts), *dear)


Charged = list[tuple[BudgetState, tuple[Alert, ...]]]


def _paid(
    debt: Debt, known: dict[str, int], limits: AgentLimits, now: datetime, rows: Rows
) -> tuple[Charged, tuple[Alert, ...]]:
    if debt.charge == Charge(0):
        release(rows, debt.reservation)
        return [], ()
    open_all(rows, debt.specs, now, known)
    charged = settle(rows, debt.specs, debt.charge, now, debt.reservation, sure=debt.sure)
    circuit_id = f"session:{debt.reservation.session}"
    return charged, charge_external(rows, circuit_id, debt.charge, limits, now) if charged else ()


def charge_left(rows: Rows, left: Reservation, limits: AgentLimits, now: datetime) -> list[Alert]:
    """Charge a request that was cut off as what it has used at most, once, to session and module.

    A task is not charged: an interruption must not use it up, where an estimate is all that is known.
    """
    if not release(rows, left):
        return []
    states = [rows.budget(budget_id) for budget_id in left.budget_ids]
    specs = [spec_of(state) for state in states if state is not None and state.budget_type != TASK]
    cost_usd = left.cost_usd if left.estimate is None else left.estimate_usd
    charge = Charge(used_at_most(left), requests=1, cost_usd=cost_usd, agent=left.agent, estimated=True)
    dear = charge_external(rows, f"session:{left.session}", charge, limits, now)
    return [*(a for _, alerts in charge_all(rows, specs, charge, now) for a in alerts), *dear]


class Debts:
    """A session's, and what earlier processes left. `warn` is called once an outage, and once at its end."""

    def __init__(self, ledger: Ledger, limits: AgentLimits, warn: Callable[[str], None]) -> None:
        self._ledger = ledger
        self._limits = limits
        self._owed = list(ledger.debts())
        self._warn = warn
        self._gone = False
        self._retry_at = 0.0

    def outage(self, error: StoreUnreachable, now: float) -> None:
        """The store did not answer; `now` is monotonic."""
        self._retry_at = now + RETRY_S
        if not self._gone:
            self._gone = True
            self._warn(f"{error.message}; work goes on, what is used is counted when the store is back")

    def resting(self, now: float) -> bool:
        """The store was gone a moment ago: not to be asked yet."""
        return self._gone and now < self._retry_at

    def owe(self, debt: Debt) -> None:
        """Remember a charge, once."""
        if all(owed.reservation.reservation_id != debt.reservation.reservation_id for owed in self._owed):
            self._owed.append(debt)
        self._ledger.keep(debt)

    def wake(self) -> None:
        """Ask a store that was gone a moment ago at once."""
        self._retry_at = 0.0

    @property
    def due(self) -> bool:
        """There is something to pay, or an outage whose end is to be told."""
        return bool(self._owed) or self._gone

    def cost_usd(self, session: str) -> float:
        """Return the cost of a session's debts in USD; models without a known price cost nothing."""
        return sum(d.charge.cost_usd or 0.0 for d in self._owed if d.reservation.session == session)

    def pay(self, store: LimitsStore, known: dict[str, int], now: datetime) -> tuple[Alert, ...]:
        """Count everything that waits. `known`: the last totals seen, for a store that came back empty."""
        alerts: list[Alert] = []
        while self._owed:
            alerts += pay(store, self._ledger, self._owed[0], known, self._limits, now)
            self._owed.pop(0)
        if self._gone:
            store.atomically(lambda rows: rows.memo(KEPT))  # where nothing was owed, it was not asked yet
            self._gone = False
            self._warn("the limits' store is back; what was used meanwhile is counted")
        return tuple(alerts)
