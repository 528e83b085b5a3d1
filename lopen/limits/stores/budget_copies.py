"""Copies of the budgets of a shared store in the project's `state.db`, where they do not expire.

A budget of a session that waits for days has expired in the shared store when the session resumes: its copy tells
what was used, what was granted and what was announced.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from lopen.core.errors import StoreUnreachable
from lopen.limits.budgets.budget import BudgetState
from lopen.limits.stores.sqlite_store import SqliteStore
from lopen.limits.stores.store import Rows
from lopen.store.database import Database


class BudgetCopies:
    """Budgets as this project saw them last, in the table that holds them where `state.db` itself is the store."""

    def __init__(self, database: Database) -> None:
        self._store = SqliteStore(database)

    def all(self, budget_id: str | None = None) -> dict[str, BudgetState]:
        """Return the copies, or the one of a budget, by id. StoreUnreachable where they cannot be read."""
        return {state.budget_id: _settled(state) for state in self._store.budgets(budget_id)}

    def find(self, budget_id: str) -> BudgetState | None:
        """Return the copy, without promises: those expire too. StoreUnreachable where it cannot be read."""
        return self.all(budget_id).get(budget_id)

    def keep(self, states: Iterable[BudgetState]) -> None:
        """Replace older copies; part of the transaction around it. What cannot be written is copied with the next change."""
        with suppress(StoreUnreachable):
            changed = [kept for state in states if (kept := _settled(state)) != self.find(state.budget_id)]
            if changed:
                self._store.atomically(lambda rows: _replace_older(rows, changed))


def _settled(state: BudgetState) -> BudgetState:
    return state.replace(reserved=0, requests_reserved=0)


def _replace_older(rows: Rows, states: list[BudgetState]) -> None:
    for state in states:
        before = rows.budget(state.budget_id)
        if before is None or _age(before) <= _age(state):
            rows.put_budget(state)


def _age(state: BudgetState) -> tuple[datetime, int, int, int]:
    """Order the states of one budget: all but a reset, which begins anew, only adds."""
    return state.started_at, state.tokens_used, state.requests_used, state.extended
