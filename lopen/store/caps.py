"""The caps of the database: lists keep their newest entries, sessions their newest rows, deleted budgets their sums.

Of the dropped entries of a list a count and a mean stay. The lists are a session's verdicts (1 passed, 0 failed), a
budget's alerts (its utilization) and a circuit's incidents (the seconds it blocked calls).

See docs/reference/storage.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from lopen.store.database import Database

KEPT_ROWS = 2_000
ROW_TABLES = {"calls": "tool_calls", "events": "events", "verifications": "verifications"}


def delete_older(database: Database, session: str, keep: int = KEPT_ROWS) -> int:
    """Delete the session's calls, verifications and events but for the newest `keep` of each; return their number."""
    deleted = 0
    with database.transaction() as connection:
        for table in ROW_TABLES.values():
            newest = f"SELECT seq FROM {table} WHERE session=?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2"  # noqa: S608 - fixed words only
            delete = f"DELETE FROM {table} WHERE session=?1 AND seq <= ({newest})"  # noqa: S608 - fixed words only
            deleted += connection.execute(delete, (session, keep)).rowcount
    return deleted


MAX_ENTRIES = 100
_PASSED = "CASE WHEN json_extract(body, '$.passed') THEN 1.0 ELSE 0.0 END"
_BLOCKED_S = "max(0, coalesce(json_extract(body, '$.until'), 0) - strftime('%s', json_extract(body, '$.at')))"

# list (and table) → owner column, measure of an entry (SQL), its name in a report
CAPPED_LISTS: Mapping[str, tuple[str, str, str]] = {
    "verdicts": ("session", _PASSED, "share that passed"),
    "alerts": ("budget_id", "coalesce(json_extract(body, '$.utilization'), 0)", "mean use"),
    "incidents": ("circuit_id", _BLOCKED_S, "mean seconds blocked"),
}


def trim(connection: sqlite3.Connection, name: str, owner: str, limit: int = MAX_ENTRIES) -> None:
    """Trim the list `name` of `owner` to its newest `limit` entries, inside the caller's transaction."""
    column, measure, _ = CAPPED_LISTS[name]
    newest = f"SELECT rowid FROM {name} WHERE {column} = ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2"  # noqa: S608 - fixed words only
    newest_dropped = connection.execute(newest, (owner, limit)).fetchone()
    if newest_dropped is None:
        return
    connection.execute(
        f"INSERT INTO dropped SELECT '{name}', ?1, count(*), sum({measure}) FROM {name}"  # noqa: S608 - fixed words only
        f" WHERE {column} = ?1 AND rowid <= ?2"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count, total = total + excluded.total",
        (owner, newest_dropped[0]),
    )
    delete = f"DELETE FROM {name} WHERE {column} = ?1 AND rowid <= ?2"  # noqa: S608 - fixed words only
    connection.execute(delete, (owner, newest_dropped[0]))


def dropped_entries(database: Database) -> list[dict[str, Any]]:
    """Return the number of entries that each kind of list has dropped, and the mean of their measure."""
    sql = "SELECT list, sum(count) AS count, sum(total) / sum(count) AS mean FROM dropped GROUP BY list"
    rows = database.connection.execute(sql)
    return [dict(row) | {"measure": CAPPED_LISTS[row["list"]][2]} for row in rows]


ADD_SPEND = """ON CONFLICT DO UPDATE SET
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
    requests = requests + excluded.requests,
    tokens = tokens + excluded.tokens,
    cost_usd = cost_usd + excluded.cost_usd,
    unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens"""
TOTALS = "archived"  # `session:archived` and `task:archived` hold the running totals of deleted limits
_FOLD_SPEND = (
    """INSERT INTO spend
SELECT substr(budget_id, 1, instr(budget_id, ':')) || ?, agent, model, input_tokens, output_tokens,
    cache_write_tokens, cache_read_tokens, requests, tokens, cost_usd, unpriced_tokens
FROM spend WHERE budget_id = ?
"""
    + ADD_SPEND
)


def add_spend_to_totals(connection: sqlite3.Connection, budget_id: str) -> None:
    """Add a budget's spend to the running totals, and reset it."""
    connection.execute(_FOLD_SPEND, (TOTALS, budget_id))
    connection.execute("DELETE FROM spend WHERE budget_id = ?", (budget_id,))
