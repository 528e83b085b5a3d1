"""Running commands beside what they may not touch: compared before and after, put back, and said.

A sandbox that makes protected paths read-only needs none of this; without one, and under Landlock, it is what
holds them (docs/reference/sandbox.md).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lopen.base.errors import LopenError
from lopen.base.events import AlertRaised, Event
from lopen.base.stat_cache import signature_at
from lopen.git.checkout import Checkout
from lopen.git.protection import NO_TAMPERING
from lopen.sandbox.command import Command, CommandResult, Sandbox
from lopen.sandbox.protected import ProtectedPaths, RestoreFailed
from lopen.storage.database import Database, storage_error
from lopen.storage.folder import DATABASE, require_plain
from lopen.storage.journal import Journal


class ObjectsVanished(LopenError):
    """A command destroyed part of the repository's history: nothing goes on over that."""


@dataclass
class Commands:
    """The commands of one session."""

    sandbox: Sandbox
    repository: Checkout
    protected: ProtectedPaths
    journal: Journal
    restored: tuple[str, ...] = ()  # by the last command
    watched: tuple[
        Path, ...
    ] = ()  # lopen's files that no command has a reason to change, and that are only told

    def __post_init__(self) -> None:
        session = self.journal.session
        self._database = self.protected.state / DATABASE
        self._records = Records(self.journal.database, session.id, session.module)

    def run(self, command: Command) -> CommandResult:
        """Run it; what it changed of protected paths is put back, told, and kept in `restored`."""
        self.restored = ()
        files = self.protected.snapshot()
        # Where the sandbox keeps .git from being written, only a new specification can appear.
        held = self.sandbox.name == "bwrap"
        state = (
            None
            if held and not self.repository.has_several_git_folders()
            else self.repository.protected_state()
        )
        if exposed := self.repository.read_only_paths():
            command = replace(command, guarded=exposed)
        database, watched = _identity(self._database), [*map(_identity, self.watched)]
        if not held:
            self._records.hold()
        try:
            return self.sandbox.run(command)
        finally:
            tampering = self.repository.restore_protected(state) if state is not None else NO_TAMPERING
            self.restored = (*self.protected.restore(files), *tampering.restored)
            if not held:  # before anything is written there again
                require_plain(self.protected.state)
                if _identity(self._database) != database:
                    raise RestoreFailed(
                        f"a command moved or replaced {self._database}",
                        hint="put it back if it still lies somewhere, then: lopen resume",
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
            if tampering.objects_vanished:
                raise ObjectsVanished(
                    "a command deleted objects of the git repository",
                    hint="git fsck shows what is missing; fetch it from another clone before going on",
                )

    def close(self) -> None:
        """After the last command."""
        self._records.close()

    def _alert(self, said: str) -> Event:
        return AlertRaised("protected_path", f"session:{self.journal.session.id}", said)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies there; None for none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_ROWS = {
    "sessions": "SELECT rowid, * FROM sessions WHERE id=?",
    "components": "SELECT rowid, * FROM components WHERE session=? ORDER BY rowid",
    "tasks": "SELECT rowid, * FROM tasks WHERE session=? ORDER BY rowid",
    "verdicts": "SELECT rowid, * FROM verdicts WHERE session=? ORDER BY rowid",
}
_BUDGETS = "SELECT budget_id, body FROM budgets WHERE budget_id IN (?, ?) ORDER BY 1"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2"

_Rows = list[tuple[object, ...]]
_Seen = tuple[int, tuple[tuple[int, ...] | None, ...]]


class RecordsForged(LopenError):
    """A command changed the database in a way that cannot be put back; nothing goes on over that."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What concerns one session in the database at one moment."""

    schema: _Rows
    rows: dict[str, _Rows]
    budgets: _Rows


class Records:
    """The rows of one session, watched while a command runs."""

    def __init__(self, database: Database, session: str, module: str) -> None:
        self._database = database
        self._session = session
        self._module = module
        self._reader: sqlite3.Connection | None = None
        self._before: _Seen | None = None

    def hold(self) -> None:
        """Remember the database as it is; to be followed by `check`."""
        if self._reader is None:
            self._reader = sqlite3.connect(self._database.path, isolation_level=None)
        if self._reader.in_transaction:  # an earlier command was not looked after to its end
            self._reader.execute("ROLLBACK")
        self._reader.execute("BEGIN")
        self._reader.execute("SELECT 1 FROM sessions LIMIT 1").fetchone()  # only now it sees what is there
        self._before = self._seen()

    def check(self) -> tuple[str, ...]:
        """What was changed meanwhile, in words; the session's rows are what they were again.

        Raises:
            RecordsForged: tables were changed, or rows were, and no connection made that change.
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
        # The files alone change legitimately too: another lopen's checkpoint, or its commit that is just being made.
        changed = [table for table in _ROWS if old.rows[table] != new.rows[table]]
        past_sqlite = bool(changed) and before is not None and now[0] == before[0]
        if past_sqlite or old.schema != new.schema:
            raise RecordsForged(
                f"a command wrote to {self._database.path}, and what it says cannot be trusted any more",
                hint=f"move the file aside; the commits stay. Then begin anew: lopen run {self._module} --new",
            )
        if changed:
            self._put_back(old, changed)
        # A person may extend a budget meanwhile, so that is told and left.
        return (*changed, *(["budgets (left as they are)"] if old.budgets != new.budgets else []))

    def close(self) -> None:
        """Let go of the database."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _seen(self) -> _Seen:
        """What changes with every write: by other connections, and to the files themselves."""
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
                    # Not deleted first: what belongs to the session would go with it.
                    end = f" ON CONFLICT (id) DO UPDATE SET {kept}"
                else:
                    connection.execute(f"DELETE FROM {table} WHERE session=?", (self._session,))  # noqa: S608
                    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                    names, end = f"{table} (rowid, {', '.join(columns)})", ""
                for row in old.rows[table]:
                    marks = ", ".join("?" * len(row))
                    connection.execute(f"INSERT INTO {names} VALUES ({marks}){end}", row)  # noqa: S608
