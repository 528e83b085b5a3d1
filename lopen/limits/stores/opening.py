"""Opening the store that the settings name: SQLite beside the sessions, or Redis."""

from __future__ import annotations

from lopen.limits.stores.records import EVIDENCE_KEPT
from lopen.limits.stores.sqlite_store import SqliteStore
from lopen.limits.stores.store import LimitsStore
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
