"""Older rows of a session, moved out of the database into compressed segments, and read back in their order.

A segment is written durably before its rows are deleted, and is named by its first row: a process that
dies in between leaves both, and the next one writes the same segment again. So no row is ever lost or
read twice.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lopen.base.atomic_files import plain_name, store_bytes
from lopen.base.errors import StorageError
from lopen.storage.database import Database

Kind = Literal["calls", "events"]
FOLDER = "session_archives"
SUFFIX = ".jsonl.gz"

# kind → table, the column that fills it, and which of its rows may go (a call under way is still to be ended)
_TABLES: dict[Kind, tuple[str, str, str]] = {
    "calls": ("tool_calls", "arguments", "outcome IS NOT NULL"),
    "events": ("events", "body", "1"),
}
KINDS: tuple[Kind, ...] = ("calls", "events")


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of a session stays in the database, of each kind: moved down to `rows` and `size` bytes
    once there are more than `most_rows` or `most_size`, so that segments are not tiny."""

    rows: int = 500
    size: int = 128 * 1024
    most_rows: int = 2_000
    most_size: int = 512 * 1024


SQUEEZED = Keep(rows=50, size=16 * 1024, most_rows=50, most_size=16 * 1024)


def move(database: Database, folder: Path, session: str, kind: Kind, keep: Keep, at_most: int) -> int:
    """Move the session's older rows, the oldest `at_most` of them, into a segment below `folder`; how many."""
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


def _last_to_move(database: Database, session: str, kind: Kind, keep: Keep) -> int | None:
    """The newest row that is to go; None where all of them may stay."""
    table, column, _ = _TABLES[kind]
    sql = f"SELECT seq, length({column}) AS size FROM {table} WHERE session=? ORDER BY seq DESC"  # noqa: S608 - fixed words only
    rows = size = 0
    boundary: int | None = None
    for row in database.connection.execute(sql, (session,)):
        rows, size = rows + 1, size + row["size"]
        if boundary is None and (rows > keep.rows or size > keep.size) and rows > 1:
            boundary = row["seq"]
        if rows > keep.most_rows or size > keep.most_size:
            return boundary
    return None


def _compressed(rows: list[dict[str, Any]]) -> bytes:
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    return gzip.compress(text.encode("utf-8", "surrogatepass"), 6, mtime=0)


def _path(database: Database, folder: Path, session: str, first: int, kind: Kind) -> Path:
    row = database.connection.execute("SELECT created_at FROM sessions WHERE id=?", (session,)).fetchone()
    began: str = row["created_at"]
    return folder / began[:10] / plain_name(f"{session}.{first}.{kind}{SUFFIX}")


def segments(folder: Path, session: str, kind: Kind) -> list[tuple[int, Path]]:
    """(first row, file) of the session's segments, in order."""
    ending = f".{kind}{SUFFIX}"
    found = []
    for path in folder.glob(f"*/*{ending}"):
        stem, _, first = path.name.removesuffix(ending).rpartition(".")
        if stem == session and first.isdigit():
            found.append((int(first), path))
    return sorted(found)


def moved(
    folder: Path, session: str, kind: Kind, *, after: int = 0, before: int | None = None
) -> Iterator[dict[str, Any]]:
    """The moved rows in order, with `after` < seq < `before` (None: no end)."""
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
        raise StorageError(f"{path}: {error}", hint="a copy from a backup can take its place") from error
