"""Segments keep the database small: older rows move to segments, and lists keep their newest entries.

Segments are compressed files with older rows of a session, read back in order.

A segment is written durably before its rows are deleted, and its name contains its first row: a process that
dies in between leaves both, and the next one writes the same segment again. No row is lost or read twice.

Of the dropped entries of a capped list a count and a mean stay. The lists are a session's verdicts (1 passed, 0
failed), a budget's alerts (its utilization) and a circuit's incidents (the seconds it blocked calls).

See docs/reference/storage.md.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lopen.core.errors import StorageError
from lopen.core.files import plain_name, store_bytes
from lopen.store.database import Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


RowKind = Literal["calls", "events", "verifications"]
ARCHIVES_FOLDER = "session_archives"
SUFFIX = ".jsonl.gz"

# kind → table, its largest column, and a condition for rows that may be moved (a running call is still updated)
_TABLES: dict[RowKind, tuple[str, str, str]] = {
    "calls": ("tool_calls", "arguments", "outcome IS NOT NULL"),
    "events": ("events", "body", "1"),
    "verifications": ("verifications", "body", "1"),
}
ROW_KINDS: tuple[RowKind, ...] = ("calls", "events", "verifications")


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The number of rows of each kind that stay in the database.

    Above `max_rows` or `max_size` bytes, rows are moved until `rows` and `size` are left, so that segments are
    not tiny.
    """

    rows: int = 500
    size: int = 128 * 1024
    max_rows: int = 2_000
    max_size: int = 512 * 1024


LEAST_KEPT_ROWS = KeptRows(rows=50, size=16 * 1024, max_rows=50, max_size=16 * 1024)


def move_rows(
    database: Database, folder: Path, session: str, kind: RowKind, keep: KeptRows, at_most: int
) -> int:
    """Move the session's older rows, at most `at_most`, into a segment below `folder`; return their number."""
    table, _, movable = _TABLES[kind]
    last = _last_to_move(database, session, kind, keep)
    if last is None:
        return 0
    with database.transaction() as connection:
        where = f"session=? AND seq<=? AND {movable}"
        sql = f"SELECT * FROM {table} WHERE {where} ORDER BY seq LIMIT ?"  # noqa: S608 - fixed words only
        rows = [dict(row) for row in connection.execute(sql, (session, last, at_most))]
        if not rows:
            return 0
        store_bytes(_path(database, folder, session, rows[0]["seq"], kind), _compressed(rows))
        connection.execute(f"DELETE FROM {table} WHERE {where}", (session, rows[-1]["seq"]))  # noqa: S608 - fixed words only
    return len(rows)


def _last_to_move(database: Database, session: str, kind: RowKind, keep: KeptRows) -> int | None:
    """Return the newest row to move; None if all rows stay."""
    table, column, _ = _TABLES[kind]
    sql = f"SELECT seq, length({column}) AS size FROM {table} WHERE session=? ORDER BY seq DESC"  # noqa: S608 - fixed words only
    rows = size = 0
    boundary: int | None = None
    for row in database.connection.execute(sql, (session,)):
        rows, size = rows + 1, size + row["size"]
        if boundary is None and (rows > keep.rows or size > keep.size) and rows > 1:
            boundary = row["seq"]
        if rows > keep.max_rows or size > keep.max_size:
            return boundary
    return None


def _compressed(rows: list[dict[str, Any]]) -> bytes:
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    return gzip.compress(text.encode("utf-8", "surrogatepass"), 6, mtime=0)


def _path(database: Database, folder: Path, session: str, first: int, kind: RowKind) -> Path:
    row = database.connection.execute("SELECT created_at FROM sessions WHERE id=?", (session,)).fetchone()
    created: str = row["created_at"]
    return folder / created[:10] / plain_name(f"{session}.{first}.{kind}{SUFFIX}")


def segments(folder: Path, session: str, kind: RowKind) -> list[tuple[int, Path]]:
    """Return the session's segments as (first row, file), in order."""
    ending = f".{kind}{SUFFIX}"
    found = []
    for path in folder.glob(f"*/*{ending}"):
        stem, _, first = path.name.removesuffix(ending).rpartition(".")
        if stem == session and first.isdigit():
            found.append((int(first), path))
    return sorted(found)


def moved_rows(
    folder: Path, session: str, kind: RowKind, *, after: int = 0, before: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows in segments in order, with `after` < seq < `before` (None: no upper bound)."""
    files = segments(folder, session, kind)
    for n, (first, path) in enumerate(files):
        following = files[n + 1][0] if n + 1 < len(files) else before
        if following is not None and following <= after + 1:
            continue
        if before is not None and first >= before:
            return
        for row in _rows(path):
            if row["seq"] > after and (before is None or row["seq"] < before):
                yield row


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as file:
            for line in file:
                yield json.loads(line)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise StorageError(f"{path}: {error}", hint="restore it from a backup") from error


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
