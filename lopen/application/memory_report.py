"""The memory report: stored data against its limits, and the result of the last cleanup.

See docs/reference/storage.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lopen.core.errors import StoreUnreachable
from lopen.limits.store import LimitsStore
from lopen.settings.schema import Settings
from lopen.store.archives import archived_sessions
from lopen.store.caps import CAPPED_LISTS, ROW_TABLES
from lopen.store.database import Database
from lopen.store.log_rotation import LOGS, LogFile
from lopen.store.sessions import SessionStore
from lopen.store.upkeep import LAST_CLEANUP, STATE_BYTES, UNCOUNTED, counted, footprint, log_limits

KB, MB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class EvidenceList:
    """The longest list of a kind; the count of entries dropped from all lists of that kind, and their sum."""

    name: str
    longest: int
    dropped: int
    total: float

    @property
    def mean(self) -> str:
        """Return the mean of the dropped entries, with its measure."""
        return f"{CAPPED_LISTS[self.name][2]} {self.total / self.dropped:.2f}"


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The sizes, limits and counts that explain the use of space."""

    parts: dict[str, int]
    counted: int
    limit: int
    logs: tuple[dict[str, Any], ...]
    sessions: int
    unfinished: int
    archived: int
    rows: dict[str, int]
    evidence: tuple[EvidenceList, ...]
    last: dict[str, Any] | None


def memory_report(store: SessionStore, folder: Path, settings: Settings, limits: LimitsStore) -> MemoryReport:
    """Return the report on a `.lopen/` folder. `limits` is the store of alerts and incidents."""
    size, logs = footprint(folder), folder / "logs"
    connection = store.database.connection
    measured = [LogFile(logs / name, log_limits(settings)) for name in LOGS]
    counts = {
        kind: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - fixed words only
        for kind, table in ROW_TABLES.items()
    }
    last = connection.execute("SELECT body FROM memos WHERE key=?", (LAST_CLEANUP,)).fetchone()
    return MemoryReport(
        parts=dict(size),
        counted=counted(size),
        limit=STATE_BYTES,
        logs=tuple(
            {"name": log.path.name, "rotations": len(log.rotations())}
            | dict(zip(("size", "lines"), log.measure(), strict=True))
            for log in measured
        ),
        sessions=len(store.ids()),
        unfinished=len(store.ids(unfinished=True)),
        archived=len(archived_sessions(store.database)),
        rows=counts,
        evidence=(_verdicts(store.database), *_evidence(store.database, limits)),
        last=json.loads(last["body"]) if last else None,
    )


def _verdicts(database: Database) -> EvidenceList:
    longest = database.connection.execute(
        "SELECT count(*) FROM verdicts GROUP BY session ORDER BY 1 DESC LIMIT 1"
    ).fetchone()
    return _list(database, "verdicts", longest[0] if longest else 0)


def _evidence(database: Database, limits: LimitsStore) -> Iterator[EvidenceList]:
    """Yield alerts and incidents; nothing if their store is not reachable."""
    try:
        owners = {
            "alerts": [alert.budget_id for alert in limits.alerts()],
            "incidents": [incident.circuit_id for incident in limits.incidents()],
        }
    except StoreUnreachable:
        return
    for name, ids in owners.items():
        yield _list(database, name, max(Counter(ids).values(), default=0))


def _list(database: Database, name: str, longest: int) -> EvidenceList:
    """Return a kind of list. Entries that lists let go are known of those in `state.db` alone."""
    sql = "SELECT coalesce(sum(count), 0), coalesce(sum(total), 0.0) FROM dropped WHERE list=?"
    count, total = database.connection.execute(sql, (name,)).fetchone()
    return EvidenceList(name, longest, count, total)


def report_lines(found: MemoryReport, settings: Settings) -> Iterator[str]:
    """Yield the report's lines for the terminal."""
    share = 100 * found.counted / found.limit
    yield f"Memory: {_size(found.counted)} of {_size(found.limit)} ({share:.1f}%)"
    yield from (
        f"  {name:<18}{_size(size):>10}" for name, size in found.parts.items() if name not in UNCOUNTED
    )
    uncounted = {name: found.parts[name] for name in UNCOUNTED if found.parts.get(name)}
    if uncounted:
        yield "Not counted against the limit"
        yield from (f"  {name:<18}{_size(size):>10}" for name, size in uncounted.items())
    yield "Logs"
    limits = log_limits(settings)
    for log in found.logs:
        yield (
            f"  {log['name']}: {_size(log['size'])} of {_size(limits.max_bytes)},"
            f" {log['lines']:,} of {limits.max_lines:,} lines, {log['rotations']} of {limits.keep} rotations"
        )
    yield (
        f"Sessions: {found.sessions} kept, {found.unfinished} of them unfinished; {found.archived} archived"
        f" (beyond {settings.memory.sessions_kept}, or {settings.memory.session_max_age_days} days after they finished)"
    )
    rows = found.rows
    yield (
        f"  {rows['calls']:,} tool calls, {rows['verifications']:,} verifications and {rows['events']:,} events"
        " in the database"
    )
    yield f"Evidence: {settings.memory.evidence_max} entries per list, {settings.memory.tool_history_max} calls for pattern detection"
    for entries in found.evidence:
        dropped = f"; {entries.dropped:,} dropped, {entries.mean}" if entries.dropped else ""
        yield f"  {entries.name}: {entries.longest} in the longest list{dropped}"
    if found.last is None:
        yield "Last cleanup: none was needed yet"
    else:
        counts = {k: v for k, v in found.last.items() if k != "at"}
        yield f"Last cleanup: {found.last['at'][:19]}Z: {cleanup_line(counts)}"


def cleanup_line(counts: dict[str, int]) -> str:
    """Return the result of a cleanup as one line."""
    return (
        f"logs rotated: {counts['logs_rotated']}, sessions archived: {counts['sessions_archived']}, rows deleted:"
        f" {counts['rows_deleted']:,}, budgets forgotten: {counts['limits_forgotten']}, freed:"
        f" {_size(counts['bytes_freed'])}"
    )


def _size(size: int) -> str:
    return f"{size / MB:.1f} MB" if size >= MB else f"{size / KB:.0f} KB"


def memory_line(folder: Path) -> str:
    """Return a line with the size of the state folder and its limit."""
    used, most = counted(footprint(folder)), STATE_BYTES
    return f"Memory: {used // 1024:,} KB / {most // 2**20} MB limit ({100 * used / most:.1f}% used)"
