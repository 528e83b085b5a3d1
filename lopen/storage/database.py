"""The SQLite file itself: opening, migrating, one reentrant transaction. Standard library only.

Rooms that keep tables of their own (limits, recordings) share one `Database`, so that their rows and the
session's change in one transaction and cost one fsync. WAL with synchronous=FULL: what was committed
survives a power cut.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lopen.base.errors import StorageError
from lopen.base.owner_seal import is_own, stamp, unkept

BUSY_TIMEOUT_S = 5.0
WAL_PAGES = 256  # folded into the file from here on: a turn writes some twenty
WAL_KEPT_BYTES = 1_060_000
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class NewerSchema(StorageError):
    """Written by a newer lopen. Left as it is."""


class UnreadableDatabase(StorageError):
    """Not a database, or a damaged one."""


class NotYours(StorageError):
    """A database that this person's lopen did not make: it came with the repository."""


def translated(path: Path, error: sqlite3.Error) -> StorageError:
    """SQLite's error as a person is told it: in the system's words, with what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes keep the plain one in the low byte
    message = f"{path}: {error}"
    if code in _DAMAGED:
        return UnreadableDatabase(
            message, hint="lopen doctor looks at it; a copy from a backup can take its place"
        )
    if code in _BUSY:
        return StorageError(message, hint="another process is writing to it; try again when that one is done")
    return StorageError(message, hint="free some space or make the folder writable, then: lopen resume")


_NEW_PRAGMA = "auto_vacuum=INCREMENTAL"  # so that the file can give space back; it writes, and holds for good
_PRAGMAS = (
    "journal_mode=WAL",
    f"wal_autocheckpoint={WAL_PAGES}",
    f"journal_size_limit={WAL_KEPT_BYTES}",
    "synchronous=FULL",
    "foreign_keys=ON",
)
_BUGS = (sqlite3.IntegrityError, sqlite3.ProgrammingError)


class Connection(sqlite3.Connection):
    """A connection whose failures are `StorageError`s, wherever a statement is executed; lopen's own bugs are not."""

    path: Path

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except _BUGS:
            raise
        except sqlite3.Error as error:
            raise translated(self.path, error) from error

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        try:
            return super().executemany(sql, parameters)
        except _BUGS:
            raise
        except sqlite3.Error as error:
            raise translated(self.path, error) from error


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order; a file's name starts with its number."""
    from importlib import resources  # 19 ms, which a hook has not got

    folder = resources.files("lopen.storage") / "migrations"
    found = [
        (int(f.name.split("_")[0]), f.read_text("utf-8")) for f in folder.iterdir() if f.name.endswith(".sql")
    ]
    return sorted(found)


class Database:
    """One connection to `state.db`, in the thread that made it."""

    def __init__(self, path: Path, *, timeout_s: float = BUSY_TIMEOUT_S, schema: int | None = None) -> None:
        """`schema`: made up to that version only, until `migrate` is called (to read an older archive)."""
        self.path = path
        self._depth = 0
        self._undo: list[Callable[[], None]] = []
        self._after: list[Callable[[], None]] = []
        self._connection = _connected(path, timeout_s)
        try:
            require_own(self._connection, path)  # before anything of what lies there is used
            new = not self._connection.execute("PRAGMA page_count").fetchone()[0]
            for pragma in ((_NEW_PRAGMA,) if new else ()) + _PRAGMAS:
                self._connection.execute(f"PRAGMA {pragma}")
            _check_whole(self._connection)
            self.migrate(schema)
        except BaseException:
            self._connection.close()
            raise

    def migrate(self, schema: int | None = None) -> None:
        """Bring the tables up to `schema`, or to the present one; `NewerSchema` where they are beyond it."""
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        steps = [step for step in migrations() if schema is None or step[0] <= schema]
        if version > steps[-1][0]:
            raise NewerSchema(
                f"{self.path} was written by a newer lopen (schema {version}, known {steps[-1][0]})",
                hint="update lopen",
            )
        if version == steps[-1][0]:
            return
        with self.transaction() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                stamp(connection)
            for number, sql in steps:
                if number > version:
                    for statement in _statements(sql):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version={number}")

    def examine(self) -> None:
        """Read every page once (5 MB: some 10 ms); `Unreadable` says what is damaged."""
        found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            self._connection.close()
            raise UnreadableDatabase(f"{self.path}: {found.splitlines()[-1]}")

    @property
    def connection(self) -> sqlite3.Connection:
        """For reading; writes go through `transaction`."""
        return self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, durable at the end of the outermost one.

        A nested one is part of the outer. Where it fails and the outer goes on, its own writes are taken back
        and nothing else.
        """
        depth, marks = self._depth, (len(self._undo), len(self._after))
        ending = False
        try:
            self._begin(depth)
            self._depth = depth + 1
            yield self._connection
            ending = True
            self._connection.execute(f"RELEASE depth_{depth}" if depth else "COMMIT")
        except BaseException as error:
            # A signal may arrive right behind the commit: what was written stands then.
            stands = ending and not depth and not isinstance(error, StorageError)
            if stands and not self._connection.in_transaction:
                self._depth = depth
                self._settle()
            else:
                self._take_back(depth, *marks)
            raise
        finally:
            self._depth = depth
        if not depth:
            self._settle()

    def version(self) -> tuple[int, int]:
        """Another value whenever anything was written in between, here or by another process."""
        elsewhere: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return elsewhere, self._connection.total_changes

    def write(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """One statement: part of the transaction around it, else durable by itself.

        A statement is all or nothing anyway, so that it wants no savepoint of its own.
        """
        if self._depth and self._connection.in_transaction:
            return self._connection.execute(sql, parameters)
        with self.transaction() as connection:
            return connection.execute(sql, parameters)

    def on_commit(self, act: Callable[[], None]) -> None:
        """Run `act` once what is being written is durable; never, where it is taken back."""
        self._after.append(act)
        if not self._depth:
            self._settle()

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Run `undo` if what is being written is taken back, the latest one first."""
        if self._depth:
            self._undo.append(undo)

    def _begin(self, depth: int) -> None:
        if not depth:
            self._connection.execute("BEGIN IMMEDIATE")
        elif self._connection.in_transaction:
            self._connection.execute(f"SAVEPOINT depth_{depth}")
        else:  # SQLite takes everything back by itself where the disk is full
            raise StorageError(f"{self.path}: the transaction was taken back; nothing more can join it")

    def _take_back(self, depth: int, undo_mark: int, after_mark: int) -> None:
        """Undo a failed transaction, in the file and in memory."""
        with suppress(StorageError):  # a savepoint that was not reached yet, or is gone with everything else
            if self._connection.in_transaction:
                self._connection.execute(f"ROLLBACK TO depth_{depth}" if depth else "ROLLBACK")
            if depth and self._connection.in_transaction:
                self._connection.execute(f"RELEASE depth_{depth}")
        while len(self._undo) > undo_mark:
            self._undo.pop()()
        del self._after[after_mark:]

    def _settle(self) -> None:
        """Everything is durable: nothing is undone any more, and whoever waited for it hears of it."""
        self._undo.clear()
        waiting, self._after = self._after, []
        for act in waiting:
            act()

    def in_memory(self) -> Database:
        """A copy that nothing outlives: for trying what would happen. Its `path` still names where it came from."""
        copy = Database(Path(":memory:"))
        self._connection.backup(copy._connection)
        copy.path = self.path
        return copy

    def close(self) -> None:
        """Close the connection; the WAL is folded in by SQLite."""
        self._connection.close()


def require_own(connection: sqlite3.Connection, path: Path) -> None:
    """`NotYours` where the database is neither empty nor made by this person's lopen."""
    if is_own(connection):
        return
    if why := unkept():
        raise StorageError(
            f"whether {path} is yours cannot be told: {why}",
            hint="make that folder writable, or set XDG_DATA_HOME to one that is",
        )
    raise NotYours(f"{path} was not made by you on this machine", hint="lopen moves it aside and begins anew")


def _connected(path: Path, timeout_s: float) -> Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, factory=Connection)
    except sqlite3.Error as error:
        raise translated(path, error) from error
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from error
    connection.path = path
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema=OFF")  # what a schema calls by itself is harmless functions
    return connection


def _check_whole(connection: Connection) -> None:
    """`Unreadable` for a file whose last page was cut: SQLite would take what is missing for zeros.

    A page half written by a checkpoint that a power cut ended is no damage: the log still has it.
    """
    path = connection.path
    page = connection.execute("PRAGMA page_size").fetchone()[0]
    if not path.is_file() or path.stat().st_size % page == 0:  # no file: it lies in memory
        return
    log = path.with_name(path.name + "-wal")
    logged = log.exists() and log.stat().st_size > 0
    if not logged or connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise UnreadableDatabase(
            f"{path}: the file was cut short", hint="a copy from a backup can take its place"
        )


def _statements(sql: str) -> Iterator[str]:
    """The statements of a script one by one (`executescript` would commit in between)."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
