"""Run commands, and restore and report what they change in protected places.

A sandbox with read-only protected paths needs none of this. Without a sandbox and under Landlock it is the protection
(docs/reference/sandbox.md).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.base.errors import LopenError
from lopen.base.events import AlertRaised, Event
from lopen.base.stat_cache import signature_at
from lopen.git.checkout import Checkout
from lopen.git.errors import GitTimedOut
from lopen.git.protection import NO_TAMPERING, ProtectedState, Tampering
from lopen.git.stored_objects import as_of
from lopen.sandbox.command import Command, CommandResult, Sandbox
from lopen.sandbox.protected import ProtectedPaths, RestoreFailed
from lopen.storage.database import Database, storage_error
from lopen.storage.folder import DATABASE, require_plain
from lopen.storage.journal import Journal
from lopen.tools.left_files import LeftFiles, clear_left_files

_SAME_SPAN_NS = 20_000_000

Runs = Callable[[Command], CommandResult]


class ObjectsVanished(LopenError):
    """A command deleted part of the repository's history, so lopen cannot continue."""


@dataclass
class Commands:
    """Runs the commands of one session."""

    sandbox: Sandbox
    repository: Checkout
    protected: ProtectedPaths
    journal: Journal
    restored: tuple[str, ...] = ()  # by the last command
    watched: tuple[Path, ...] = ()  # lopen's files whose changes by commands are only reported
    carried: tuple[
        Path, ...
    ] = ()  # the person's files that verify commands are shown: no command changes them
    unchecked: Path | None = None  # a file that says since when git's objects are not checked

    def __post_init__(self) -> None:
        self._spans: list[tuple[int, int]] = []
        session = self.journal.session
        self._database = self.protected.state / DATABASE
        self._records = Records(self.journal.database, session.id, session.module)

    def run(self, command: Command) -> CommandResult:
        """Run a command; restore and report the protected paths that it changed, and list them in `restored`."""
        with self.guarded() as run:
            return run(command)

    @contextmanager
    def guarded(self, *, confined: bool = True) -> Iterator[Runs]:
        """Yield what runs commands, also side by side; at its end do for all of them what `run` does for one.

        `confined`: nothing else but commands in the sandbox changes files meanwhile.
        """
        self.restored = ()
        started = time.time_ns()
        files = self.protected.snapshot()
        # Under bubblewrap .git is read-only, and a command can only add a specification.
        protects_git = confined and self.sandbox.name == "bwrap"
        state = (
            None
            if protects_git and not self.repository.has_several_git_folders()
            else self.repository.protected_state()
        )
        exposed = (*self.repository.read_only_paths(), *map(str, self.carried))
        database, watched = _identity(self._database), [*map(_identity, self.watched)]
        if not protects_git:
            self._records.begin()
        if state is not None and self.unchecked is not None:
            self.unchecked.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.unchecked.write_text(f"{started}\n")
        try:
            yield lambda command: self.sandbox.run(replace(command, guarded=exposed) if exposed else command)
        finally:
            self.note_change(started)
            tampering, failure = NO_TAMPERING, None
            try:
                tampering = self._put_back(state) if state is not None else NO_TAMPERING
            except LopenError as error:  # raised once the specifications are put back and reported
                failure = error
            self.restored = (*self.protected.restore(files), *tampering.restored)
            if not protects_git:  # before lopen writes there again
                require_plain(self.protected.state)
                if _identity(self._database) != database:
                    raise RestoreFailed(
                        f"a command moved or replaced {self._database}",
                        hint="move it back if it still exists, then: lopen resume",
                    )
                if forged := self._records.check():
                    listed = ", ".join(forged)
                    self.journal.tell(self._alert(f"a command wrote to lopen's database; put back: {listed}"))
                    self.restored = (*self.restored, f".lopen/{DATABASE} ({listed})")
            if self.restored:
                listed = ", ".join(self.restored)
                self.journal.tell(self._alert(f"a command changed protected paths; put back: {listed}"))
            if lost := [str(p) for p, was in zip(self.watched, watched, strict=True) if _identity(p) != was]:
                listed = ", ".join(lost)
                self.journal.tell(self._alert(f"a command moved or replaced lopen's files: {listed}"))
            if failure is not None:
                raise failure
            _require_objects(tampering)

    def _put_back(self, state: ProtectedState) -> Tampering:
        found = self.repository.restore_protected(state)
        if self.unchecked is not None:
            self.unchecked.unlink(missing_ok=True)
        return found

    def check_killed(self) -> None:
        """Check the objects that commands of a killed run stored in git, if it was killed before it could do that."""
        if self.unchecked is None or not self.unchecked.is_file():
            return
        said = self.unchecked.read_text("ascii", "replace").strip()
        now, since = self.repository.protected_state(), int(said) if said.isdecimal() else 0
        objects, shadow = (found and as_of(found, since) for found in (now.objects, now.shadow))
        try:
            tampering = self._put_back(replace(now, objects=objects, shadow=shadow))
        except GitTimedOut as error:  # what lopen decides by is also checked when it is read
            self.journal.tell(
                self._alert(f"what a killed run's commands stored in git is not checked: {error}")
            )
            self.unchecked.unlink(missing_ok=True)
            return
        if tampering.restored:
            listed = ", ".join(tampering.restored)
            self.journal.tell(
                self._alert(f"a killed run's command stored untrue objects; put back: {listed}")
            )
        _require_objects(tampering)

    def note_change(self, since_ns: int) -> None:
        """Note that files were changed from then until now by a command or a tool."""
        now = time.time_ns()
        if self._spans and since_ns - self._spans[-1][1] < _SAME_SPAN_NS:
            since_ns = self._spans.pop()[0]
        self._spans.append((since_ns, now))

    def clear_left_files(self) -> LeftFiles:
        """Find what commands left where no commit shows it; remove what runs by itself."""
        spans, self._spans = tuple(self._spans), []
        kept = self.repository.configured_paths()
        return clear_left_files(self.repository.root, self.repository, spans, kept=kept)

    def close(self) -> None:
        """Close the database after the last command."""
        self._records.close()

    def _alert(self, message: str) -> Event:
        return AlertRaised("protected_path", f"session:{self.journal.session.id}", message)


def _require_objects(tampering: Tampering) -> None:
    if tampering.objects_vanished:
        raise ObjectsVanished(
            "a command deleted objects of the git repository",
            hint="git fsck shows the missing objects; fetch them from another clone, then: lopen resume",
        )


def _identity(path: Path) -> tuple[int, ...]:
    """Return the device and inode of the file, () if there is none."""
    return signature_at(path)[:2]


_ROWS = {
    "sessions": "SELECT rowid, * FROM sessions WHERE id=?",
    "components": "SELECT rowid, * FROM components WHERE session=? ORDER BY rowid",
    "tasks": "SELECT rowid, * FROM tasks WHERE session=? ORDER BY rowid",
    "verdicts": "SELECT rowid, * FROM verdicts WHERE session=? ORDER BY rowid",
    "verifications": "SELECT rowid, * FROM verifications WHERE session=? ORDER BY rowid",
    "test_runs": "SELECT rowid, * FROM test_runs WHERE session=? ORDER BY rowid",
}
_BUDGETS = "SELECT budget_id, body FROM budgets WHERE budget_id IN (?, ?) ORDER BY 1"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2"

_Rows = list[tuple[object, ...]]
_Seen = tuple[int, tuple[tuple[int, ...] | None, ...]]


class RecordsForged(LopenError):
    """A command changed the database in a way that lopen cannot revert, so it cannot continue."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The schema and the rows of one session in the database at one moment."""

    schema: _Rows
    rows: dict[str, _Rows]
    budgets: _Rows


class Records:
    """Detects and reverts changes of one session's rows while a command runs."""

    def __init__(self, database: Database, session: str, module: str) -> None:
        self._database = database
        self._session = session
        self._module = module
        self._reader: sqlite3.Connection | None = None
        self._before: _Seen | None = None

    def begin(self) -> None:
        """Open a read transaction on the current database; `check` follows."""
        if self._reader is None:
            self._reader = sqlite3.connect(self._database.path, isolation_level=None)
        if self._reader.in_transaction:  # an interruption prevented the previous command's `check`
            self._reader.execute("ROLLBACK")
        self._reader.execute("BEGIN")
        self._reader.execute("SELECT 1 FROM sessions LIMIT 1").fetchone()  # the first read fixes the snapshot
        self._before = self._seen()

    def check(self) -> tuple[str, ...]:
        """Revert the changes of the session's rows since `begin`; return the names of the changed tables.

        Raises:
            RecordsForged: the schema changed, or rows changed without a write by a connection.
        """
        reader, before = self._reader, self._before
        assert reader is not None
        try:
            now = self._seen()
            if now == before:
                return ()
            try:
                old = self._found(reader.execute)
                new = self._found(self._database.connection.execute)
            except sqlite3.Error as error:
                raise storage_error(self._database.path, error) from error
        finally:
            reader.execute("ROLLBACK")
        # The files also change legitimately: by a checkpoint or a commit of another lopen.
        changed = [table for table in _ROWS if old.rows[table] != new.rows[table]]
        past_sqlite = bool(changed) and before is not None and now[0] == before[0]
        if past_sqlite or old.schema != new.schema:
            raise RecordsForged(
                f"a command wrote to {self._database.path}, so its content is not trustworthy any more",
                hint=f"move the file away; the commits stay. Then start again: lopen run {self._module} --new",
            )
        if changed:
            self._put_back(old, changed)
        # A person may extend a budget meanwhile, so report that without reverting it.
        return (*changed, *(["budgets (left as they are)"] if old.budgets != new.budgets else []))

    def close(self) -> None:
        """Close the reading connection."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _seen(self) -> _Seen:
        """Return values that change with every write by another connection or to the files."""
        version = self._database.connection.execute("PRAGMA data_version").fetchone()[0]
        path = str(self._database.path)
        return version, (signature_at(path), signature_at(f"{path}-wal"))

    def _found(self, execute: Callable[..., sqlite3.Cursor]) -> _Found:
        rows = {table: [tuple(row) for row in execute(sql, (self._session,))] for table, sql in _ROWS.items()}
        names = (f"module:{self._module}", f"session:{self._session}")
        budgets = [tuple(row) for row in execute(_BUDGETS, names)]
        return _Found([tuple(row) for row in execute(_SCHEMA)], rows, budgets)

    def _put_back(self, old: _Found, tables: list[str]) -> None:
        with self._database.transaction() as connection:
            for table in tables:
                if table == "sessions":
                    columns = [row[1] for row in connection.execute("PRAGMA table_info(sessions)")]
                    kept = ", ".join(f"{name}=excluded.{name}" for name in columns if name != "id")
                    names = f"sessions (rowid, {', '.join(columns)})"
                    # An update instead of a deletion, which would cascade to the session's other rows.
                    end = f" ON CONFLICT (id) DO UPDATE SET {kept}"
                else:
                    connection.execute(f"DELETE FROM {table} WHERE session=?", (self._session,))  # noqa: S608
                    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                    names, end = f"{table} (rowid, {', '.join(columns)})", ""
                for row in old.rows[table]:
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT INTO {names} VALUES ({marks}){end}", row)  # noqa: S608
