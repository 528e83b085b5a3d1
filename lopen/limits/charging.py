"""Changes of budgets inside a store's transaction: opened, promised, refused, charged, settled; and charges that wait.

Both stores share them. A charge that could not be counted while the store was gone is a debt. It is kept in `state.db`,
in the transaction that records the turn. A process that ends before the store is back loses nothing: the project's
next process pays. Where `state.db` cannot be written either, the turn is not recorded, and the next process charges
what is left of its promise, as after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from lopen.core.errors import LopenError
from lopen.core.process_identity import is_elsewhere, is_gone
from lopen.limits.agents import EXTERNAL_AGENTS, AgentLimits, add_cost
from lopen.limits.budget import (
    PAUSE,
    SMALLEST_ANSWER,
    TASK,
    BudgetSpec,
    BudgetState,
    Charge,
    Crossing,
    answer_room,
    budget_alert,
    opened,
    record,
)
from lopen.limits.records import Alert, Reservation, UnreadableRecord, dump, load
from lopen.limits.store import LimitsStore, Rows

# USD for one request with an answer of so many tokens; None where its model has no known price
Quote = Callable[[int], float | None]
ELSEWHERE = timedelta(
    minutes=15
)  # a promise that a process of another host made is waited for; no request takes longer


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """A budget that lets a request not be made, and the alerts of the thresholds that were announced by it."""

    state: BudgetState
    crossing: Crossing  # PAUSE or CONFIRMATION; "" where requests under way may leave some of what they were promised
    alerts: tuple[Alert, ...]


def promise(
    rows: Rows,
    specs: Sequence[BudgetSpec],
    wanted: Reservation,
    max_tokens: int,
    now: datetime,
    quote: Quote,
) -> tuple[Reservation, int] | BudgetRefusal:
    """Set tokens aside in every budget for a request whose input is `wanted.tokens`.

    Gives the reservation with the answer's length, or the budget that refuses the request. `quote`: its cost with an
    answer of so many tokens.
    """
    states = [rows.budget(spec.budget_id) or opened(spec, now) for spec in specs]
    room = max_tokens
    for state in states:
        room = answer_room(state, wanted.tokens, room)
        most = state.spec.max_cost_usd
        fits = affordable(quote, room, most - state.cost_usd - state.reserved_usd) if room and most else room
        if room and not fits and _is_promised(rows, state.budget_id, now):
            return BudgetRefusal(state, "", ())
        if not fits:
            return _refused(rows, state, wanted.tokens + max_tokens, now)
        room = fits
    kept = replace(
        wanted,
        tokens=wanted.tokens + room,
        cost_usd=quote(room),
        estimate=wanted.tokens,
        estimate_usd=quote(0),
    )
    for state in states:
        requests = state.requests_reserved + 1
        rows.put_budget(
            replace(
                state,
                reserved=state.reserved + kept.tokens,
                requests_reserved=requests,
                reserved_usd=state.reserved_usd + (kept.cost_usd or 0.0),
            )
        )
    rows.put_reservation(kept)
    return kept, room


def _is_promised(rows: Rows, budget_id: str, now: datetime) -> bool:
    """Return True if a request under way holds a promise of this budget; one of another host for a while."""
    return any(
        now - r.at < ELSEWHERE if is_elsewhere(r.owner) else not is_gone(r.owner)
        for r in rows.reservations()
        if budget_id in r.budget_ids
    )


def _refused(rows: Rows, state: BudgetState, need: int, now: datetime) -> BudgetRefusal:
    """Announce each threshold once: a budget without room pauses at any use."""
    crossing = state.refusal or PAUSE
    crossed = state.due
    if crossing == PAUSE and PAUSE not in (*state.announced, *crossed):
        crossed = (*crossed, PAUSE)
    kept = replace(state, announced=(*state.announced, *crossed), last_updated=now)
    rows.put_budget(kept)
    return BudgetRefusal(kept, crossing, _announced(rows, kept, crossed, now, need))


def _announced(
    rows: Rows, state: BudgetState, crossed: Sequence[str], now: datetime, need: int = SMALLEST_ANSWER
) -> tuple[Alert, ...]:
    """Keep an alert for each threshold. `need`: tokens of the request that found no room."""
    alerts = tuple(budget_alert(state, crossing, now, need) for crossing in crossed)
    for alert in alerts:
        rows.add_alert(alert)
    return alerts


def charge_all(
    rows: Rows,
    specs: Sequence[BudgetSpec],
    charge: Charge,
    now: datetime,
    promised: Reservation | None = None,
) -> list[Alert]:
    """Add `charge` to each budget, and give its promise there back; return the alerts of thresholds crossed."""
    alerts: list[Alert] = []
    for spec in specs:
        before = rows.budget(spec.budget_id) or opened(spec, now)
        if promised is not None and spec.budget_id in promised.budget_ids:
            before = _given_back(before, promised)
        after, crossed = record(before, charge, now)
        rows.put_budget(after)
        rows.add_spend(spec.budget_id, charge)
        alerts += _announced(rows, after, crossed, now)
    return alerts


def settle(
    rows: Rows,
    specs: Sequence[BudgetSpec],
    charge: Charge,
    now: datetime,
    promised: Reservation,
    limits: AgentLimits,
    *,
    sure: bool,
) -> list[Alert]:
    """Charge a promise and give it back; do nothing where that was done before.

    A promise that is gone was settled before if it was `sure` to be made. A promise that may never have been made
    leaves a mark of the settlement instead.
    """
    mark = PAID + promised.reservation_id
    there = release(rows, promised, keep=[spec.budget_id for spec in specs])
    if not there and (sure or rows.memo(mark) is not None):
        return []
    if not sure:
        rows.put_memo(mark, {"at": now.isoformat()})
    alerts = charge_all(rows, specs, charge, now, promised if there else None)
    return alerts + _external_cost(rows, promised.session, charge, limits, now)


def charge_cut_off(rows: Rows, left: Reservation, limits: AgentLimits, now: datetime) -> list[Alert]:
    """Charge the highest possible use of a request that was cut off, once, to session and module.

    A task is not charged: an interruption must not use it up, where an estimate is all that is known.
    """
    if not release(rows, left):
        return []
    states = [rows.budget(budget_id) for budget_id in left.budget_ids]
    specs = [state.spec for state in states if state is not None and state.budget_type != TASK]
    cost_usd = left.cost_usd if left.estimate is None else left.estimate_usd
    charge = Charge(left.used_at_most, requests=1, cost_usd=cost_usd, agent=left.agent, estimated=True)
    return charge_all(rows, specs, charge, now) + _external_cost(rows, left.session, charge, limits, now)


def _external_cost(
    rows: Rows, session: str, charge: Charge, limits: AgentLimits, now: datetime
) -> list[Alert]:
    if charge.agent not in EXTERNAL_AGENTS or not charge.cost_usd:
        return []
    return add_cost(rows, f"session:{session}", charge.cost_usd, limits, now)


def replace_promise(rows: Rows, changed: Reservation) -> None:
    """Keep another estimate with a promise, unless it was settled meanwhile."""
    if rows.reservation(changed.reservation_id) is not None:
        rows.put_reservation(changed)


def release(rows: Rows, reservation: Reservation, *, keep: Sequence[str] = ()) -> bool:
    """Give promised tokens back, but for the budgets `keep`; False where that was done before. Safe to retry."""
    if rows.reservation(reservation.reservation_id) is None:
        return False
    rows.drop_reservation(reservation.reservation_id)
    for budget_id in reservation.budget_ids:
        state = None if budget_id in keep else rows.budget(budget_id)
        if state is not None:
            rows.put_budget(_given_back(state, reservation))
    return True


def _given_back(state: BudgetState, reservation: Reservation) -> BudgetState:
    return replace(
        state,
        reserved=max(0, state.reserved - reservation.tokens),
        requests_reserved=max(0, state.requests_reserved - 1),
        reserved_usd=max(0.0, state.reserved_usd - (reservation.cost_usd or 0.0)),
    )


def affordable(quote: Quote, max_tokens: int, left_usd: float) -> int:
    """Return the longest answer, in tokens, that `left_usd` pays for, input included; 0 where not even the smallest.

    All of `max_tokens` where no price is known: such a model is limited in tokens alone.
    """
    whole, bare = quote(max_tokens), quote(0)
    if whole is None or bare is None or whole <= left_usd:
        return max_tokens
    room = int((left_usd - bare) * max_tokens / (whole - bare)) if whole > bare else 0
    return room if room >= min(SMALLEST_ANSWER, max_tokens) else 0


RETRY_S = 5.0  # a store that is gone is not asked again before
KEPT = "debt:"
PAID = "paid:"  # memo of a settlement that its promise alone does not prove


@dataclass(frozen=True, slots=True)
class Debt:
    """A charge that waits, with the promise that it settles; a charge of nothing only gives the promise back.

    `sure`: the promise was certainly made, so a missing promise was settled already.
    """

    specs: tuple[BudgetSpec, ...]
    charge: Charge
    reservation: Reservation
    sure: bool = True

    @property
    def key(self) -> str:
        """The name of its row: a promise is owed once."""
        return KEPT + self.reservation.reservation_id


class Debts:
    """The debts of a project, in `state.db`. `warn` is called once an outage, and once at its end."""

    def __init__(
        self, store: LimitsStore, limits: AgentLimits, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self._store = store
        self._limits = limits
        self._warn = warn
        self._gone = False
        self._retry_at = 0.0

    def owed(self) -> Iterator[Debt]:
        """Yield every debt, also those of other processes."""
        sql = "SELECT body FROM memos WHERE key >= 'debt:' AND key < 'debt;' ORDER BY key"
        for row in self._store.database.connection.execute(sql).fetchall():
            try:
                yield load(Debt, str(row["body"]))
            except UnreadableRecord:  # of another version: it cannot be charged
                continue

    def outage(self, error: LopenError, now: float) -> None:
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
        self._store.database.write("INSERT OR REPLACE INTO memos VALUES (?, ?)", (debt.key, dump(debt)))

    @property
    def due(self) -> bool:
        """There is something to pay, or an outage whose end is to be told."""
        return self._gone or any(self.owed())

    def charges(self, session: str) -> list[Charge]:
        """Return the charges of a session that wait."""
        return [debt.charge for debt in self.owed() if debt.reservation.session == session]

    def pay(self, now: datetime) -> tuple[Alert, ...]:
        """Count every waiting debt once, also if another process pays at the same time or the answer is lost."""
        alerts: list[Alert] = []
        for debt in self.owed():
            alerts += self._store.atomically(partial(_paid, debt, self._limits, now))
            self._store.database.write("DELETE FROM memos WHERE key = ?", (debt.key,))
        if self._gone:
            # where nothing was owed, the store was not asked yet
            self._store.atomically(lambda rows: rows.memo(KEPT))
            self._gone = False
            self._warn("the limits' store is back; what was used meanwhile is counted")
        return tuple(alerts)


def _paid(debt: Debt, limits: AgentLimits, now: datetime, rows: Rows) -> list[Alert]:
    if debt.charge == Charge(0):
        release(rows, debt.reservation)
        return []
    return settle(rows, debt.specs, debt.charge, now, debt.reservation, limits, sure=debt.sure)
