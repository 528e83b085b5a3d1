"""A process that counts: `python -m tests.limits.counting STORE DATABASE HOW_MANY`, run four times at once by a test."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from lopen.limits.budget import BudgetSpec, Charge
from lopen.limits.redis_store import RedisStore
from lopen.limits.sqlite_store import SqliteStore
from lopen.limits.store import LimitsStore
from lopen.store.database import Database
from tests.limits.conftest import charged

SPEC = BudgetSpec("session:counted", "session", 400)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def opened(where: str, kept: Path) -> LimitsStore:
    """A Redis, or a database that does not wait for the disk: exactness is what is tested, not durability."""
    database = Database(kept, timeout_s=60)
    database.connection.execute("PRAGMA synchronous=OFF")
    if where == "sqlite":
        return SqliteStore(database)
    return RedisStore(where, database, prefix="counting", answer_s=30, operation_s=60)


def count(where: str, kept: Path, how_many: int) -> list[str]:
    """Add 1 so many times; the alerts that this process was the one to raise."""
    store = opened(where, kept)
    charge = Charge(1, agent="builder")
    said = [a.alert_type for _ in range(how_many) for a in charged(store, [SPEC], charge, NOW)]
    store.close()
    return said


if __name__ == "__main__":
    sys.stdout.write("\n".join(count(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
