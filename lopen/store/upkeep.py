"""Automatic upkeep of `.lopen/`: rotate logs, archive finished sessions, delete older rows, reclaim space.

A full cleanup runs at the start of a session. While it runs, a cheap check follows every iteration and every few
hundred events. A cleanup may be interrupted anywhere; the next one continues it. One process at a time cleans,
and a failure does not stop the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lopen.core.clock import Clock
from lopen.core.errors import LopenError
from lopen.core.events import IterationEnded, Recorded, SessionStarted
from lopen.store.archives import archive_session, delete_limit_rows
from lopen.store.caps import KEPT_ROWS, delete_older
from lopen.store.database import RECORDED_TASKS, UnreadableDatabase
from lopen.store.folder import Locked, exclusive_lock
from lopen.store.log_rotation import LOGS, LogFile, LogLimits
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session

if TYPE_CHECKING:
    from lopen.settings.schema import Settings

STATE_BYTES = 5 * 1024 * 1024  # that `.lopen/` stays under, but for `UNCOUNTED`
# Files that the user keeps (recordings, archives), and damaged files
UNCOUNTED = ("recordings", "session_archives", "corrupted")
EVENTS_BETWEEN_CHECKS = 256
FEWER_ROWS = (500, 50)  # of each kind, where `.lopen/` is too large
TRACEBACKS = ("check-*.txt", "crash-*.txt")  # named by the time, so that the newest sort last
LAST_CLEANUP = "memory:last"  # the memo with the result of the last cleanup that changed anything
STALE_S = 3_600.0  # the process of an older temporary file has ended


def log_limits(settings: Settings) -> LogLimits:
    """Return the limits of logs that the settings want."""
    memory = settings.memory
    age_s = timedelta(days=memory.log_max_age_days).total_seconds()
    return LogLimits(memory.log_max_kb * 1024, memory.log_max_lines, age_s, memory.log_keep)


def footprint(folder: Path) -> Mapping[str, int]:
    """Return the bytes in a `.lopen/` folder by the first name below it; the database's files count as `state.db`."""
    parts: dict[str, int] = {}
    for entry in sorted(folder.glob("*")):
        name = "state.db" if entry.name.startswith("state.db") else entry.name
        parts[name] = parts.get(name, 0) + _size(entry)
    return parts


def counted(parts: Mapping[str, int]) -> int:
    """Return the bytes of a `footprint` that count against the limit."""
    return sum(size for name, size in parts.items() if name not in UNCOUNTED)


def memory_line(folder: Path) -> str:
    """Return a line with the size of the state folder and its limit."""
    used = counted(footprint(folder))
    share = 100 * used / STATE_BYTES
    return f"Memory: {used // 1024:,} KB / {STATE_BYTES // 2**20} MB limit ({share:.1f}% used)"


def last_cleanup(store: SessionStore) -> dict[str, Any] | None:
    """Return the time and the result of the last cleanup that changed anything."""
    sql = "SELECT body FROM memos WHERE key=?"
    row = store.database.connection.execute(sql, (LAST_CLEANUP,)).fetchone()
    return None if row is None else dict(json.loads(row["body"]))


def _size(path: Path) -> int:
    """Return the bytes in a file or folder; a file that is gone meanwhile counts as none."""
    size = 0
    for entry in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
        with suppress(OSError):
            size += 0 if entry.is_dir() else entry.lstat().st_size
    return size


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """The result of a cleanup. `bytes_freed` includes only bytes that count against the limit."""

    logs_rotated: int = 0
    sessions_archived: int = 0
    rows_deleted: int = 0
    limits_forgotten: int = 0
    bytes_freed: int = 0

    def __add__(self, other: CleanupResult) -> CleanupResult:
        return CleanupResult(
            *(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True))
        )

    @property
    def changed(self) -> bool:
        """True if the cleanup changed anything."""
        return bool(self.logs_rotated or self.sessions_archived or self.rows_deleted or self.limits_forgotten)


class Upkeep:
    """The upkeep of one project. `session` is the one this process drives, whose module lock it already holds."""

    def __init__(
        self,
        store: SessionStore,
        folder: Path,
        settings: Settings,
        clock: Clock,
        *,
        warn: Callable[[str], None],
        session: Session | None = None,
        state_bytes: int = STATE_BYTES,
    ) -> None:
        self._store = store
        self._folder = folder
        self._settings = settings
        self._clock = clock
        self._warn = warn
        self._session = session
        self._state_bytes = state_bytes
        self._events = 0
        self._last_warning = ""

    def __call__(self, record: Recorded) -> None:
        """Receive a journal event: clean at a session's start, and check while it runs."""
        self._events += record.event.durable
        if isinstance(record.event, SessionStarted):
            self._run(self.clean)
        elif isinstance(record.event, IterationEnded) or self._events >= EVENTS_BETWEEN_CHECKS:
            self._events = 0
            self._run(self._check)

    def _run(self, work: Callable[[], object]) -> None:
        """Run `work`; turn its failure into a warning."""
        try:
            work()
        except (LopenError, OSError) as error:
            self._warn_once(f"cannot clean {self._folder} ({error}); the work continues")

    def _warn_once(self, text: str) -> None:
        if text != self._last_warning:
            self._last_warning = text
            self._warn(text)

    def _check(self) -> None:
        """Delete the driven session's older rows; clean fully only above the size limit."""
        if self._session:
            delete_older(self._store.database, self._session.id)
        if self._over():
            self.clean()

    def _over(self) -> bool:
        return counted(footprint(self._folder)) > self._state_bytes

    def clean(self) -> CleanupResult:
        """Clean fully. Do nothing if another process is cleaning."""
        with ExitStack() as stack:
            try:
                stack.enter_context(exclusive_lock(self._folder / "locks", "upkeep", "the upkeep"))
            except Locked:
                return CleanupResult()
            before = counted(footprint(self._folder))
            freed = self._apply_policy()
            self._store.database.reclaim()
            if self._over():
                freed += self._keep_least()
            after = footprint(self._folder)
            left = counted(after)
            freed = replace(freed, bytes_freed=max(0, before - left))
            self._record(freed)
        if left > self._state_bytes:
            name, size = max(
                ((name, size) for name, size in after.items() if name not in UNCOUNTED),
                key=lambda part: part[1],
            )
            self._warn_once(
                f"{self._folder} takes {left / 2**20:.1f} MB, more than {self._state_bytes / 2**20:g} MB;"
                f" most of it is {name} ({size / 2**20:.1f} MB); next: lopen memory"
            )
        return freed

    def _apply_policy(self) -> CleanupResult:
        now = self._clock.now()
        self._remove_stale_files(now)
        return CleanupResult(
            logs_rotated=sum(log.rotate_if_due(now) for log in self.logs()),
            sessions_archived=self._archive_but(self._settings.memory.sessions_kept),
            rows_deleted=self._delete_older(KEPT_ROWS),
            limits_forgotten=self._delete_idle_limits(now - timedelta(seconds=self._settings.budget.ttl_s)),
        )

    def _keep_least(self) -> CleanupResult:
        """Archive every finished session, then keep fewer rows of the others until the size limit holds."""
        freed = CleanupResult(sessions_archived=self._archive_but(0))
        self._store.database.reclaim(fully=True)
        for keep in FEWER_ROWS:
            if self._over():
                freed += CleanupResult(rows_deleted=self._delete_older(keep))
                self._store.database.reclaim(fully=True)
        return freed

    def logs(self) -> list[LogFile]:
        """Return every log of the project."""
        folder = self._folder / "logs"
        return [LogFile(folder / name, log_limits(self._settings)) for name in LOGS if folder.is_dir()]

    def _remove_stale_files(self, now: datetime) -> None:
        """Delete temporary files of ended processes, and older tracebacks than as many as rotations are kept of a log."""
        for pattern in TRACEBACKS:
            for path in sorted((self._folder / "logs").glob(pattern))[: -self._settings.memory.log_keep]:
                path.unlink(missing_ok=True)
        for folder in (self._folder / "logs", *self._store.archives.glob("*")):
            for path in folder.glob(".*"):
                if path.is_file() and now.timestamp() - path.stat().st_mtime > STALE_S:
                    path.unlink(missing_ok=True)

    def _archive_but(self, keep: int) -> int:
        """Archive the finished sessions except young ones among the newest `keep`; return their number.

        This process's own session stays, and so do those whose module another process works on.
        """
        now, newest = self._clock.now(), set(self._store.ids()[:keep])
        cutoff = (now - timedelta(days=self._settings.memory.session_max_age_days)).isoformat()
        rows = self._store.database.connection.execute(
            "SELECT id, module, updated_at FROM sessions WHERE status='complete' AND id<>? ORDER BY created_at, rowid",
            (self._session.id if self._session else "",),
        ).fetchall()
        count = 0
        for session, module, updated_at in rows:
            if session in newest and updated_at >= cutoff:
                continue
            ours = self._session is not None and self._session.module == module
            lock = exclusive_lock(self._folder / "locks", f"module-{module}", f"module {module}")
            try:
                with nullcontext() if ours else lock:
                    archive_session(self._store, session, now)
                    count += 1
            except (Locked, UnreadableDatabase):  # continue with the next session
                continue
        return count

    def _delete_older(self, keep: int) -> int:
        """Delete all but the newest `keep` rows of each kind of every session; return the number of deleted ones."""
        return sum(delete_older(self._store.database, session, keep) for session in self._store.ids())

    def _delete_idle_limits(self, cutoff: datetime) -> int:
        """Delete the limits of sessions and tasks not in the database that were unused since `cutoff`.

        They belong to Claude Code's sessions or to deleted ones. Their totals stay. Return the number of budgets.
        """
        with self._store.database.transaction() as connection:
            rows = connection.execute(
                "SELECT budget_id FROM budgets WHERE last_updated < ?1 AND ("  # noqa: S608 - fixed words only
                " budget_id LIKE 'session:%' AND substr(budget_id, 9) NOT IN (SELECT id FROM sessions)"
                f" OR budget_id LIKE 'task:%' AND substr(budget_id, 6) NOT IN (SELECT id FROM {RECORDED_TASKS})"
                " OR budget_id LIKE 'group:%' AND NOT EXISTS (SELECT 1 FROM sessions"
                " WHERE status <> 'complete' AND instr(body, substr(budget_id, 7)) > 0))",
                (cutoff.isoformat(),),
            ).fetchall()
            idle = [str(row["budget_id"]) for row in rows]
            foreign = [i.removeprefix("session:") for i in idle if i.startswith("session:")]
            related = [key for name in foreign for key in (f"agents:session:{name}", f"hooks:{name}")]
            delete_limit_rows(connection, [*idle, *related])
            connection.execute(
                "DELETE FROM memos WHERE (key >= 'paid:' AND key < 'paid;' OR key >= 'request:' AND key < 'request;')"
                " AND json_extract(body, '$.at') < ?",
                (cutoff.isoformat(),),
            )
        return len(idle)

    def _record(self, freed: CleanupResult) -> None:
        if not freed.changed:
            return
        body = json.dumps({"at": self._clock.now().isoformat(), **asdict(freed)})
        with self._store.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (LAST_CLEANUP, body))
