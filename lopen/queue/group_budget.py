"""The budget of builds that were ordered together: in Redis with all limits where the settings name one, else in the
queue's database, and all other limits are a build's own then.

A promise is known by its module and fencing number: one of an older number was cut off, and the lease's present holder
charges it. One of another build that runs, or that is about to be taken over, is waited for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from lopen.core.process_identity import this_process
from lopen.limits.budget import GROUP, BudgetState
from lopen.limits.opening import open_limits
from lopen.limits.records import Reservation, decoded, dump, parsed
from lopen.limits.sqlite_store import SqliteRows, SqliteStore
from lopen.limits.store import LimitsStore, Rows
from lopen.queue.shared import SharedQueue, patient
from lopen.settings.schema import Settings
from lopen.store.database import Database

T = TypeVar("T")
NOBODY = ""  # the owner of a promise whose process is gone
DEFAULT_PREFIX = "lopen"  # of keys in Redis


def group_limits(
    settings: Settings, database: Database, queue: SharedQueue, group: str, module: str = "", fence: int = 0
) -> LimitsStore:
    """Open the limits of a build, or without a module those of a person, who changes the group's."""
    if settings.budget.store == "sqlite":
        return GroupStore(database, queue, group, module, fence)
    budget = settings.budget.model_copy(update={"key_prefix": shared_prefix(settings, queue)})
    return open_limits(settings.model_copy(update={"budget": budget}), database)


def shared_prefix(settings: Settings, queue: SharedQueue) -> str:
    """Return the prefix of the project's keys in Redis, the same on all machines."""
    prefix = settings.budget.key_prefix
    return f"{prefix}.{queue.project}" if prefix == DEFAULT_PREFIX else prefix


class GroupRows(SqliteRows):
    """A build's own rows, but for the group's budget and the promises, which `kept` has: it is changed in place."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        evidence_max: int,
        group: str,
        kept: dict[str, Any],
        own: tuple[str, int],
    ) -> None:
        """`own`: this build's module and fencing number. `kept["going"]`: the modules that run or are about to."""
        super().__init__(connection, evidence_max)
        self._id, self._kept, self._own = f"{GROUP}:{group}", kept, own

    def budget(self, budget_id: str) -> BudgetState | None:
        """Return the budget; the group's with the promises that are there, so that none counts twice or stays."""
        if budget_id != self._id or "budget" not in self._kept:
            return super().budget(budget_id) if budget_id != self._id else None
        promised = self.reservations()
        return replace(
            decoded(BudgetState, self._kept["budget"]),
            reserved=sum(r.tokens for r in promised),
            requests_reserved=len(promised),
            reserved_usd=sum(r.cost_usd or 0.0 for r in promised),
        )

    def put_budget(self, state: BudgetState) -> None:
        if state.budget_id == self._id:
            self._kept["budget"] = parsed(dump(state))
        else:
            super().put_budget(state)

    def reservations(self) -> list[Reservation]:
        """Return the promises of all builds of the group."""
        return [found for name in self._kept["promised"] if (found := self.reservation(name)) is not None]

    def reservation(self, reservation_id: str) -> Reservation | None:
        found = self._kept["promised"].get(reservation_id)
        if found is None:
            return None
        body, module, fence = found
        mine = module == self._own[0]
        under_way = fence == self._own[1] if mine else module in self._kept["going"]
        return replace(decoded(Reservation, body), owner=this_process() if under_way else NOBODY)

    def put_reservation(self, reservation: Reservation) -> None:
        self._kept["promised"][reservation.reservation_id] = [parsed(dump(reservation)), *self._own]

    def drop_reservation(self, reservation_id: str) -> None:
        self._kept["promised"].pop(reservation_id, None)


class GroupStore(SqliteStore):
    """The limits of a build that shares a budget with others; only the holder of its lease changes any.

    Without a module: for a person, who changes the group's limits.
    """

    def __init__(
        self, database: Database, queue: SharedQueue, group: str, module: str = "", fence: int = 0
    ) -> None:
        super().__init__(database)
        self.shared, self._group, self._own = queue, group, (module, fence)

    @patient
    def atomically(self, work: Callable[[Rows], T]) -> T:
        """Run `work` in a transaction of both databases; the queue's is committed first. Raises `Fenced`."""
        with (
            self.database.transaction() as connection,
            self.shared.spending(self._group, *self._own) as kept,
        ):
            return work(GroupRows(connection, self._evidence_max, self._group, kept, self._own))
