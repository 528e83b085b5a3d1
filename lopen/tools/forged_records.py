"""The rows of a session in lopen's database, which a command without a sandbox can write to: compared, and put back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from lopen.core.errors import LopenError
from lopen.core.stat_cache import signature_at
from lopen.store.database import Database, storage_error

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
