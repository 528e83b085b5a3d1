"""Keeping `.lopen/` small: logs rotated, finished sessions archived, older rows moved, space given back.

It happens by itself: whole at the start of a session, and while one runs a cheap look at the end of every
iteration and every few hundred events. Each part may be cut off anywhere and is taken up by the next run;
one process at a time is at it, and a failure of it stops nobody's work.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from lopen.base.clock import Clock
from lopen.base.errors import LopenError
from lopen.base.events import IterationEnded, Recorded, SessionStarted
from lopen.retention.log_rotation import LogFile, log_names
from lopen.retention.policy import RetentionPolicy
from lopen.retention.space import footprint, reclaim
from lopen.storage.archives import archive_session, delete_limit_rows
from lopen.storage.database import UnreadableDatabase
from lopen.storage.lock import Locked, exclusive_lock
from lopen.storage.segments import LEAST_KEPT_ROWS, ROW_KINDS, KeptRows, move_rows
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session

EVENTS_BETWEEN_LOOKS = 256
ROWS_AT_ONCE = 10_000  # moved into one segment; all that a run waits for at a time, about 0.3 s
LAST = "memory:last"  # the memo that holds the last cleaning that did something
STALE_S = 3_600.0  # a temporary file of lopen's own that is older was left by a dead process


@dataclass(frozen=True, slots=True)
class Freed:
    """What a cleaning did. `bytes_freed` of what counts against the limit."""

    logs_rotated: int = 0
    sessions_archived: int = 0
    rows_moved: int = 0
    limits_forgotten: int = 0
    bytes_freed: int = 0

    def __add__(self, other: Freed) -> Freed:
        return Freed(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))

    @property
    def anything(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.logs_rotated or self.sessions_archived or self.rows_moved or self.limits_forgotten)


class Upkeep:
    """One project's. `session` is the one this process drives: it holds that module's lock already."""

    def __init__(
        self,
        store: SessionStore,
        folder: Path,
        policy: RetentionPolicy,
        clock: Clock,
        *,
        warn: Callable[[str], None],
        session: Session | None = None,
    ) -> None:
        self._store = store
        self._folder = folder
        self._policy = policy
        self._clock = clock
        self._warn = warn
        self._session = session
        self._events = 0
        self._said = ""

    def __call__(self, record: Recorded) -> None:
        """Subscribes to a journal: clean at a session's start, look while it runs."""
        self._events += record.event.durable
        if isinstance(record.event, SessionStarted):
            self._safely(lambda: self.clean(most_rows=ROWS_AT_ONCE))
        elif isinstance(record.event, IterationEnded) or self._events >= EVENTS_BETWEEN_LOOKS:
            self._events = 0
            self._safely(self._look)

    def _safely(self, work: Callable[[], Freed]) -> None:
        try:
            work()
        except (LopenError, OSError) as error:
            self._say_once(f"{self._folder} could not be cleaned ({error}); the work goes on")

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._warn(text)

    def _look(self) -> Freed:
        """Cheap: move older rows, and clean only where the limit is passed."""
        freed = Freed(rows_moved=self._move(KeptRows(), ROWS_AT_ONCE)) if self._session else Freed()
        return freed + self.clean(most_rows=ROWS_AT_ONCE - freed.rows_moved) if self._over() else freed

    def _over(self) -> bool:
        return footprint(self._folder).counted > self._policy.state_bytes

    def clean(self, *, most_rows: int = sys.maxsize) -> Freed:
        """All of it, but for rows beyond `most_rows`, which are left for the next time; nothing where another
        process is at it."""
        with ExitStack() as stack:
            try:
                stack.enter_context(exclusive_lock(self._folder / "locks", "upkeep", "the upkeep"))
            except Locked:
                return Freed()
            before = footprint(self._folder).counted
            freed = self._ordinary(most_rows)
            reclaim(self._store.database)
            if self._over():
                freed += self._squeezed(most_rows - freed.rows_moved)
                reclaim(self._store.database, all_of_it=True)
            after = footprint(self._folder)
            freed = replace(freed, bytes_freed=max(0, before - after.counted))
            self._remember(freed)
        if after.counted > self._policy.state_bytes and freed.rows_moved < most_rows:
            name, size = max(after.parts.items(), key=lambda part: part[1])
            self._say_once(
                f"{self._folder} takes {after.counted / 2**20:.1f} MB, more than memory.state_max_mb allows;"
                f" the most of it is {name} ({size / 2**20:.1f} MB): lopen memory report"
            )
        return freed

    def _ordinary(self, most_rows: int) -> Freed:
        now = self._clock.now()
        self._sweep(now)
        return Freed(
            logs_rotated=sum(log.rotate_if_due(now) for log in self.logs()),
            sessions_archived=self._archive(self._due(now), now),
            rows_moved=self._move(KeptRows(), most_rows),
            limits_forgotten=self._forget(now - timedelta(seconds=self._policy.session_age_s)),
        )

    def _squeezed(self, most_rows: int) -> Freed:
        """The limit is passed all the same: whatever is finished goes, and little stays of what runs."""
        now = self._clock.now()
        return Freed(
            sessions_archived=self._archive(self._finished(), now),
            rows_moved=self._move(LEAST_KEPT_ROWS, most_rows),
            limits_forgotten=self._forget(now - timedelta(days=1)),
        )

    # logs

    def logs(self) -> list[LogFile]:
        """Every log of the project."""
        folder = self._folder / "logs"
        return [LogFile(folder / name, self._policy.logs) for name in log_names(folder)]

    def _sweep(self, now: datetime) -> None:
        """Temporary files that a dead process left."""
        for folder in (self._folder / "logs", *self._store.archives.glob("*")):
            for path in folder.glob(".*"):
                if path.is_file() and now.timestamp() - path.stat().st_mtime > STALE_S:
                    path.unlink(missing_ok=True)

    # sessions

    def _finished(self) -> Iterator[tuple[str, str]]:
        """(id, module) of every finished session but our own, oldest first."""
        own = self._session.id if self._session else ""
        rows = self._store.database.connection.execute(
            "SELECT id, module FROM sessions WHERE status='complete' AND id<>? ORDER BY created_at, rowid",
            (own,),
        ).fetchall()
        yield from ((row["id"], row["module"]) for row in rows)

    def _due(self, now: datetime) -> Iterator[tuple[str, str]]:
        """Those beyond the newest that are kept, or finished too long ago."""
        newest = set(self._store.ids()[: self._policy.sessions])
        edge = (now - timedelta(seconds=self._policy.session_age_s)).isoformat()
        rows = self._store.database.connection.execute("SELECT id FROM sessions WHERE updated_at<?", (edge,))
        old = {row["id"] for row in rows}
        for session, module in self._finished():
            if session in old or session not in newest:
                yield session, module

    def _archive(self, sessions: Iterator[tuple[str, str]], now: datetime) -> int:
        """Archive them; one whose module another process works on is left for later."""
        count = 0
        for session, module in sessions:
            ours = self._session is not None and self._session.module == module
            lock = exclusive_lock(self._folder / "locks", f"module-{module}", f"module {module}")
            try:
                with nullcontext() if ours else lock:
                    archive_session(self._store, session, now)
                    count += 1
            except (Locked, UnreadableDatabase):  # the next session is not to wait for this one
                continue
        return count

    def _move(self, keep: KeptRows, most: int) -> int:
        """Move older rows of whatever is kept in the database, at most so many; how many."""
        store = self._store
        moved = 0
        for session in store.ids():
            for kind in ROW_KINDS:
                while moved < most:
                    at_once = min(ROWS_AT_ONCE, most - moved)
                    just_now = move_rows(store.database, store.archives, session, kind, keep, at_once)
                    moved += just_now
                    if not just_now:
                        break
        return moved

    def _forget(self, edge: datetime) -> int:
        """Budgets and circuits of sessions and tasks that are not ours to keep (Claude Code's, deleted ones),
        untouched since `edge`. Their totals stay."""
        with self._store.database.transaction() as connection:
            rows = connection.execute(
                "SELECT budget_id FROM budgets WHERE last_updated < ?1 AND ("
                " budget_id LIKE 'session:%' AND substr(budget_id, 9) NOT IN (SELECT id FROM sessions)"
                " OR budget_id LIKE 'task:%' AND substr(budget_id, 6) NOT IN (SELECT id FROM tasks))",
                (edge.isoformat(),),
            ).fetchall()
            idle = [str(row["budget_id"]) for row in rows]
            foreign = [i.removeprefix("session:") for i in idle if i.startswith("session:")]
            beside = [key for name in foreign for key in (f"agents:session:{name}", f"hooks:{name}")]
            delete_limit_rows(connection, [*idle, *beside])
            connection.execute(
                "DELETE FROM memos WHERE key >= 'paid:' AND key < 'paid;' AND json_extract(body, '$.at') < ?",
                (edge.isoformat(),),
            )
        return len(idle)

    # what was done

    def _remember(self, freed: Freed) -> None:
        if not freed.anything:
            return
        body = json.dumps({"at": self._clock.now().isoformat(), **asdict(freed)})
        with self._store.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO memos VALUES (?, ?)", (LAST, body))
