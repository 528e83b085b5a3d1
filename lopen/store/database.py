"""The SQLite database: opening, creating, one reentrant transaction. Standard library only.

The limits share the session's `Database`, so that their rows and the session's change in one transaction and
cost one fsync. WAL mode with synchronous=FULL: committed changes survive a power cut.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lopen.core.errors import StorageError
from lopen.core.files import private_folder
from lopen.core.person import is_own, stamp, unkept
from lopen.store import SCHEMA

OLDEST_SQLITE = (3, 34)
BUSY_TIMEOUT_S = 5.0
WAL_PAGES = 256  # a checkpoint runs at this size; a turn writes about twenty pages
MAX_WAL_BYTES = 1_060_000
MIN_RECLAIMED_BYTES = 512 * 1024  # fewer free pages stay for the next rows
RECORDED_TASKS = """(SELECT s.id AS session, s.module, json_extract(t.value, '$.id') AS id,
    json_extract(t.value, '$.state') AS state, json_extract(t.value, '$.commit') AS commit_id
FROM sessions s,
    json_each(CASE WHEN json_valid(s.body) THEN s.body ELSE '{}' END, '$.plan.tree.components') c,
    json_each(c.value, '$.tasks') t)"""
"""The tasks in the sessions' documents, in the place of a table; a view may not call these functions (`trusted_schema`)."""
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class NewerSchema(StorageError):
    """A newer lopen wrote the database. It is not changed."""


class UnreadableDatabase(StorageError):
    """The file is damaged or is not a database."""


class OlderSchema(UnreadableDatabase):
    """An older lopen wrote the database."""


class ForeignDatabase(StorageError):
    """Another user's lopen created the database: it came with the repository."""


def storage_error(path: Path, error: sqlite3.Error) -> StorageError:
    """Return SQLite's error as a `StorageError` with a hint."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes keep the plain one in the low byte
    message = f"{path}: {error}"
    if code in _DAMAGED:
        return UnreadableDatabase(message, hint="restore it from a backup, or move it away")
    if code in _BUSY:
        return StorageError(message, hint="another process is writing to it; try again when that one is done")
    return StorageError(message, hint="free some space or make the folder writable, then: lopen resume")


_NEW_PRAGMA = "auto_vacuum=INCREMENTAL"  # lets the file shrink; only effective in a new database
_PRAGMAS = (
    "journal_mode=WAL",
    f"wal_autocheckpoint={WAL_PAGES}",
    f"journal_size_limit={MAX_WAL_BYTES}",
    "synchronous=FULL",
    "foreign_keys=ON",
)
_BUGS = (sqlite3.IntegrityError, sqlite3.ProgrammingError)


class Connection(sqlite3.Connection):
    """A connection that raises `StorageError` for every failure except lopen's own bugs."""

    path: Path

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except _BUGS:
            raise
        except sqlite3.Error as error:
            raise storage_error(self.path, error) from error


def schema_sql() -> str:
    """Return the statements that create every table."""
    from importlib import resources  # takes 19 ms, too long for a hook

    return (resources.files("lopen.store") / "schema.sql").read_text("utf-8")


class Database:
    """One connection to `state.db`, for the thread that created it."""

    def __init__(self, path: Path, *, timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """Open or create the database."""
        self.path = path
        self._depth = 0
        self._undo: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] = []
        self._connection = _connect(path, timeout_s)
        try:
            require_own_database(self._connection, path)  # before any of its content is used
            new = not self._connection.execute("PRAGMA page_count").fetchone()[0]
            for pragma in ((_NEW_PRAGMA,) if new else ()) + _PRAGMAS:
                self._connection.execute(f"PRAGMA {pragma}")
            _require_complete(self._connection)
            self._create()
        except BaseException:
            self._connection.close()
            raise

    def _create(self) -> None:
        """Create the tables of a new database.

        Raises:
            NewerSchema: a newer lopen wrote the database.
            OlderSchema: an older lopen wrote it.
        """
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA:
            raise NewerSchema(
                f"a newer lopen wrote {self.path} (schema {version}, known {SCHEMA})", hint="update lopen"
            )
        if 0 < version < SCHEMA:
            raise OlderSchema(f"an older lopen wrote {self.path} (schema {version}, known {SCHEMA})")
        if version == SCHEMA:
            return
        with self.transaction() as connection:
            if (
                connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA
            ):  # another process was faster
                return
            stamp(connection)
            for statement in _statements(schema_sql()):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={SCHEMA}")

    def check_integrity(self) -> None:
        """Read every page once (5 MB: about 10 ms); raises `UnreadableDatabase` if one is damaged."""
        result = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if result != "ok":
            self._connection.close()
            raise UnreadableDatabase(f"{self.path}: {result.splitlines()[-1]}")

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection for reading; writes go through `transaction`."""
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction, durable at the end of the outermost context.

        A nested transaction is a savepoint: if it fails and the outer one continues, only its own writes are
        rolled back.
        """
        depth, marks = self._depth, (len(self._undo), len(self._after))
        committing = False
        try:
            self._begin(depth)
            self._depth = depth + 1
            yield self._connection
            committing = True
            self._connection.execute(f"RELEASE depth_{depth}" if depth else "COMMIT")
        except BaseException as error:
            # A signal may arrive directly after the commit succeeded.
            may_be_committed = committing and not depth and not isinstance(error, StorageError)
            if may_be_committed and not self._connection.in_transaction:
                self._depth = depth
                self._after_commit()
            else:
                self._roll_back(depth, *marks)
            raise
        finally:
            self._depth = depth
        if not depth:
            self._after_commit()

    def version(self) -> tuple[int, int]:
        """Return a value that differs after every write, by this process or another."""
        other_processes: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return other_processes, self._connection.total_changes

    def write(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Execute one statement, in the enclosing transaction or in its own.

        A single statement is atomic, so it needs no savepoint.
        """
        if self._depth and self._connection.in_transaction:
            return self._connection.execute(sql, parameters)
        with self.transaction() as connection:
            return connection.execute(sql, parameters)

    def on_commit(self, act: Callable[[], None]) -> None:
        """Call `act` when the current transaction is durable; never if it is rolled back."""
        self._after.append(act)
        if not self._depth:
            self._after_commit()

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Call `undo` if the current transaction is rolled back, in reverse order of registration."""
        if self._depth:
            self._undo.append(undo)

    def _begin(self, depth: int) -> None:
        if not depth:
            self._connection.execute("BEGIN IMMEDIATE")
        elif self._connection.in_transaction:
            self._connection.execute(f"SAVEPOINT depth_{depth}")
        else:  # SQLite itself rolls back everything, for example when the disk is full
            raise StorageError(f"{self.path}: the enclosing transaction was already rolled back")

    def _roll_back(self, depth: int, undo_mark: int, after_mark: int) -> None:
        """Undo a failed transaction, in the file and in memory."""
        with suppress(StorageError):  # the savepoint may not exist yet, or no longer
            if self._connection.in_transaction:
                self._connection.execute(f"ROLLBACK TO depth_{depth}" if depth else "ROLLBACK")
            if depth and self._connection.in_transaction:
                self._connection.execute(f"RELEASE depth_{depth}")
        while len(self._undo) > undo_mark:
            self._undo.pop()()
        del self._after[after_mark:]

    def _after_commit(self) -> None:
        """Forget the undo calls and run the calls that wait for the commit."""
        self._undo.clear()
        waiting, self._after = self._after, []
        for act in waiting:
            act()

    def reclaim(self, *, fully: bool = False) -> None:
        """Return free pages to the file system if there are many, or `fully`. A busy database is left for later."""
        connection = self._connection
        try:
            free = connection.execute("PRAGMA freelist_count").fetchone()[0]
            page = connection.execute("PRAGMA page_size").fetchone()[0]
            if free and (fully or free * page > MIN_RECLAIMED_BYTES):
                connection.executescript("PRAGMA incremental_vacuum")  # `execute` would free only one page
            connection.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)" if fully else "PRAGMA wal_checkpoint(PASSIVE)"
            )
        except (StorageError, sqlite3.Error):  # another process reads or writes
            return

    def close(self) -> None:
        """Close the connection; SQLite then checkpoints the WAL."""
        self._connection.close()


def require_own_database(connection: sqlite3.Connection, path: Path) -> None:
    """Require that the database is empty or that this user's lopen created it; raises `ForeignDatabase`."""
    if is_own(connection):
        return
    if reason := unkept():
        raise StorageError(
            f"cannot verify that {path} is yours: {reason}",
            hint="make that folder writable, or set XDG_DATA_HOME to one that is",
        )
    raise ForeignDatabase(
        f"{path} was not created by you on this machine",
        hint="lopen moves it to .lopen/corrupted and starts with a new one",
    )


def _connect(path: Path, timeout_s: float) -> Connection:
    try:
        private_folder(path.parent)
        if str(path) != ":memory:":
            # SQLite gives its journals the permissions of the database, which holds inputs and outputs of tools.
            # A file that exists is not opened: closing it would drop the locks of this process's other connections.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, factory=Connection)
    except sqlite3.Error as error:
        raise storage_error(path, error) from error
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    connection.path = path
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema=OFF")  # a schema can then call only harmless functions
    return connection


def _require_complete(connection: Connection) -> None:
    """Raise `UnreadableDatabase` for a truncated file, whose missing part SQLite would read as zeros.

    A page that a checkpoint half wrote before a power cut is not damaged: the WAL still holds it.
    """
    path = connection.path
    page = connection.execute("PRAGMA page_size").fetchone()[0]
    if not path.is_file() or path.stat().st_size % page == 0:  # no file: the database is in memory
        return
    log = path.with_name(path.name + "-wal")
    logged = log.exists() and log.stat().st_size > 0
    if not logged or connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise UnreadableDatabase(f"{path}: the file is truncated", hint="restore it from a backup")


def _statements(sql: str) -> Iterator[str]:
    """Yield the statements of a script one by one (`executescript` would commit in between)."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
