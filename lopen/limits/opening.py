"""Opening the store that the settings name: SQLite beside the sessions, or Redis."""

from __future__ import annotations

from lopen.core.errors import WrongUsage, install_command
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import LimitsStore
from lopen.settings.schema import Settings
from lopen.store.database import Database


def open_limits(settings: Settings, database: Database) -> LimitsStore:
    """The stores in which budgets and circuits are counted."""
    budget, kept = settings.budget, settings.memory.evidence_max
    if budget.store == "sqlite":
        return SqliteStore(database, evidence_max=kept)
    try:
        from lopen.limits.redis_store import RedisStore, project_prefix
    except ModuleNotFoundError as error:
        raise WrongUsage(
            "budget.store names a Redis server, but redis-py is not installed", hint=install_command("redis")
        ) from error

    prefix = project_prefix(budget.key_prefix, str(database.path.parent.parent))
    return RedisStore(budget.store, database, prefix=prefix, ttl_s=budget.ttl_s, evidence_max=kept)
