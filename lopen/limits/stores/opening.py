"""Opening the store that the settings name: SQLite beside the sessions, or Redis."""

from __future__ import annotations

from contextlib import closing, suppress

from lopen.core.errors import StoreUnreachable
from lopen.limits.stores.records import EVIDENCE_KEPT
from lopen.limits.stores.sqlite_store import SqliteStore
from lopen.limits.stores.store import LimitsStore, Rows
from lopen.limits.unsettled_charges import NO_LEDGER, DatabaseLedger, Ledger
from lopen.settings.schema import Budget
from lopen.store.database import Database


def open_limits(budget: Budget, database: Database, *, evidence_max: int = EVIDENCE_KEPT) -> LimitsStore:
    """Where budgets and circuits are counted. `evidence_max`: `memory.evidence_max`, for whoever writes."""
    if budget.store == "sqlite":
        return SqliteStore(database, evidence_max=evidence_max)
    from lopen.limits.stores.budget_copies import BudgetCopies
    from lopen.limits.stores.redis_client import project_prefix
    from lopen.limits.stores.redis_store import RedisStore

    prefix = project_prefix(budget.key_prefix, str(database.path.parent.parent))
    copies = BudgetCopies(database)
    return RedisStore(
        budget.store, prefix=prefix, ttl_s=budget.ttl_s, evidence_max=evidence_max, copies=copies
    )


def open_ledger(budget: Budget, database: Database) -> Ledger:
    """Where is kept what the store is owed while it is gone: beside the sessions, unless it lies there itself."""
    return NO_LEDGER if budget.store == "sqlite" else DatabaseLedger(database)


def copy_shared(budget: Budget, database: Database) -> None:
    """Bring what a shared store counted into `database`, a copy to look at. Where the store is gone, work goes on without."""
    if budget.store == "sqlite":
        return
    with suppress(StoreUnreachable), closing(open_limits(budget, database)) as shared:
        budgets, circuits = shared.budgets(), shared.circuits()

        def put(rows: Rows) -> None:
            for state in budgets:
                rows.put_budget(state)
            for circuit in circuits:
                rows.put_circuit(circuit)

        SqliteStore(database).atomically(put)
