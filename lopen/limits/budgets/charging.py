"""Changes of budgets inside a store's transaction: opened, promised, charged. Both stores share them."""

from __future__ import annotations

from lopen.limits.budgets.budget import (
    PAUSE,
    SMALLEST_ANSWER,
    BudgetSpec,
    BudgetState,
    Charge,
    answer_room,
    due,
    opened,
    record,
)
from lopen.limits.stores.records import Reservation
from lopen.limits.texts import budget_alert

PAID = "paid:"  # memo of a settlement that its promise alone does not prove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from lopen.limits.stores.records import Alert
    from lopen.limits.stores.store import Rows


def charge_all(
    rows: Rows,
    specs: Sequence[BudgetSpec],
    charge: Charge,
    now: datetime,
    promised: Reservation | None = None,
) -> list[tuple[BudgetState, tuple[Alert, ...]]]:
    """Add `charge` to each budget, and give back what was promised there for it.

    The alerts of thresholds crossed are kept and returned.
    """
    charged = []
    for spec in specs:
        before = rows.budget(spec.budget_id) or opened(spec, now)
        if promised is not None and spec.budget_id in promised.budget_ids:
            before = _given_back(before, promised)
        after, crossed = record(before, charge, now)
        rows.put_budget(after)
        rows.add_spend(spec.budget_id, charge)
        charged.append((after, announce(rows, after, crossed, now)))
    return charged


def settle(
    rows: Rows,
    specs: Sequence[BudgetSpec],
    charge: Charge,
    now: datetime,
    promised: Reservation | None,
    *,
    sure: bool,
) -> list[tuple[BudgetState, tuple[Alert, ...]]]:
    """Charge what was promised, once, and give the promise back; nothing comes back where that was done before.

    A promise that is gone was settled before if it was `sure` to be made; a store that may have forgotten it,
    and a promise that may never have been made, leave a mark of the settlement instead.
    """
    if promised is None:
        return charge_all(rows, specs, charge, now)
    mark, trusted = PAID + promised.reservation_id, sure and not rows.forgets
    there = release(rows, promised, keep=[spec.budget_id for spec in specs])
    if not there and (trusted or rows.memo(mark) is not None):
        return []
    if not trusted:
        rows.put_memo(mark, {"at": now.isoformat()})
    return charge_all(rows, specs, charge, now, promised if there else None)


def announce(
    rows: Rows, state: BudgetState, crossed: Sequence[str], now: datetime, need: int = SMALLEST_ANSWER
) -> tuple[Alert, ...]:
    """Keep an alert for each crossing. `need`: tokens of the request that found no room."""
    alerts = tuple(budget_alert(state, crossing, now, need) for crossing in crossed)
    for alert in alerts:
        rows.add_alert(alert)
    return alerts


def open_all(
    rows: Rows, specs: Sequence[BudgetSpec], now: datetime, seeds: dict[str, int]
) -> list[BudgetState]:
    """Every budget with the present limits; `seeds`: tokens already known to be used where a store forgot."""
    states = []
    for spec in specs:
        earlier = rows.budget(spec.budget_id)
        state = opened(spec, now, earlier)
        if earlier is None and seeds.get(spec.budget_id):
            state = state.replace(tokens_used=seeds[spec.budget_id])
            state = state.replace(announced=due(state))
        rows.put_budget(state)
        states.append(state)
    return states


def promise(
    rows: Rows,
    specs: Sequence[BudgetSpec],
    wanted: Reservation,
    max_tokens: int,
    now: datetime,
    quote: Callable[[int], float | None],
) -> tuple[Reservation, int] | tuple[BudgetState, tuple[Alert, ...]]:
    """Set tokens aside in every budget for a request whose input is `wanted.tokens`.

    Gives the reservation with the answer's length, or the budget that has no room with the alert that
    its pause is announced by. `quote`: what it costs with an answer of so many tokens.
    """
    states = [rows.budget(spec.budget_id) or opened(spec, now) for spec in specs]
    room = max_tokens
    for state in states:
        room = answer_room(state, wanted.tokens, room)
        if not room:
            return _refused(rows, state, wanted.tokens + max_tokens, now)
    kept = wanted.replace(
        tokens=wanted.tokens + room, cost_usd=quote(room), estimate=wanted.tokens, estimate_usd=quote(0)
    )
    for state in states:
        rows.put_budget(
            state.replace(
                reserved=state.reserved + kept.tokens, requests_reserved=state.requests_reserved + 1
            )
        )
    rows.put_reservation(kept)
    return kept, room


def _refused(
    rows: Rows, state: BudgetState, need: int, now: datetime
) -> tuple[BudgetState, tuple[Alert, ...]]:
    crossed = () if PAUSE in state.announced else (PAUSE,)
    paused = state.replace(announced=(*state.announced, *crossed), last_updated=now)
    rows.put_budget(paused)
    return paused, announce(rows, paused, crossed, now, need)


def replace_promise(rows: Rows, changed: Reservation) -> None:
    """Keep another estimate with a promise, unless it was settled meanwhile."""
    if rows.reservation(changed.session, changed.reservation_id) is not None:
        rows.put_reservation(changed)


def release(rows: Rows, reservation: Reservation, *, keep: Sequence[str] = ()) -> bool:
    """Give promised tokens back, but for the budgets `keep`; False where that was done before.

    A repeated try so counts once.
    """
    if rows.reservation(reservation.session, reservation.reservation_id) is None:
        return False
    rows.drop_reservation(reservation)
    for budget_id in reservation.budget_ids:
        state = None if budget_id in keep else rows.budget(budget_id)
        if state is not None:
            rows.put_budget(_given_back(state, reservation))
    return True


def _given_back(state: BudgetState, reservation: Reservation) -> BudgetState:
    return state.replace(
        reserved=max(0, state.reserved - reservation.tokens),
        requests_reserved=max(0, state.requests_reserved - 1),
    )
