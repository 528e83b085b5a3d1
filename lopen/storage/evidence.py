"""Lists of evidence are capped: the newest entries stay, of the others a count and a mean.

Which lists: a session's verdicts (what they measure: 1 passed, 0 failed), a budget's alerts (how full it
was), a circuit's incidents (seconds it held calls back). Standard library only: hooks raise alerts too.

See docs/reference/storage.md.
"""

from __future__ import annotations

import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = 100
_PASSED = "CASE WHEN json_extract(body, '$.passed') THEN 1.0 ELSE 0.0 END"
_HELD_S = "max(0, coalesce(json_extract(body, '$.until'), 0) - strftime('%s', json_extract(body, '$.at')))"

# list (and table) → whose it is, what an entry measures, how that is said
LISTS: Mapping[str, tuple[str, str, str]] = {
    "verdicts": ("session", _PASSED, "share that passed"),
    "alerts": ("budget_id", "coalesce(json_extract(body, '$.utilization'), 0)", "mean use"),
    "incidents": ("circuit_id", _HELD_S, "mean seconds held back"),
}


def cap(connection: sqlite3.Connection, name: str, owner: str, kept: int = KEPT) -> None:
    """Cut the list `name` of `owner` to its newest `kept` entries, inside the caller's transaction."""
    column, measure, _ = LISTS[name]
    newest = f"SELECT rowid FROM {name} WHERE {column} = ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2"  # noqa: S608 - fixed words only
    edge = connection.execute(newest, (owner, kept)).fetchone()
    if edge is None:
        return
    connection.execute(
        f"INSERT INTO dropped SELECT '{name}', ?1, count(*), sum({measure}) FROM {name}"  # noqa: S608 - fixed words only
        f" WHERE {column} = ?1 AND rowid <= ?2"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count, total = total + excluded.total",
        (owner, edge[0]),
    )
    connection.execute(f"DELETE FROM {name} WHERE {column} = ?1 AND rowid <= ?2", (owner, edge[0]))  # noqa: S608 - fixed words only
