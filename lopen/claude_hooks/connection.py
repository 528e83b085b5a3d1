"""A lean way to `state.db` for a hook: no migration files read, no path library loaded.

Where the schema is not the present one, `lopen.store.database` migrates it or says that it is newer.
"""

from __future__ import annotations

import os

import lopen
from lopen.core.errors import StoreUnreachable
from lopen.core.person import is_own, unkept
from lopen.core.quick_sqlite import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

LOG_BYTES = (
    64 * 4_120
)  # SQLite's log of changes, which every hook reads whole; a call writes about five pages
_left_open: list[sqlite3.Connection] = []  # held until the process is gone


def present_schema() -> int:
    """The number of the newest migration."""
    folder = os.path.join(os.path.dirname(lopen.__file__), "store", "migrations")
    return max(int(name.partition("_")[0]) for name in os.listdir(folder) if name.endswith(".sql"))


class LeanDatabase:
    """The part of a database that `SqliteStore` needs, one transaction at a time."""

    def __init__(self, path: str, timeout_s: float) -> None:
        """StoreUnreachable where there is no database that this version can use. `notes`: what was done to have one."""
        self.notes: tuple[str, ...] = ()
        self._path = path
        try:
            if not os.path.exists(path):
                _migrate(path)
            self._file = _file_number(path)
            try:
                self._open(path, timeout_s)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self.notes = self.set_aside(error)
                self._open(path, timeout_s)
        except (sqlite3.Error, OSError) as error:
            raise StoreUnreachable(f"{path}: {error}") from error

    def _open(self, path: str, timeout_s: float) -> None:
        self._connection = self._connected(path, timeout_s)
        if not is_own(self._connection):  # it came with the repository: its limits are nobody's
            self._connection.close()
            _begin_anew(path, self._file)
            self._connection = self._connected(path, timeout_s)
        if self._version() != present_schema():
            self._connection.close()
            _migrate(path)
            self._connection = self._connected(path, timeout_s)

    def _connected(self, path: str, timeout_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None)
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    @property
    def connection(self) -> sqlite3.Connection:
        """For reading."""
        return self._connection

    def transaction(self) -> _Transaction:
        """All or nothing."""
        return _Transaction(self._connection)

    def set_aside(self, error: BaseException | None) -> tuple[str, ...]:
        """Keep the damaged database apart and begin an empty one; what to say about it."""
        kept = _begin_anew(self._path, self._file)
        self._file = _file_number(self._path)
        said = f"{self._path} was damaged ({error}): it is kept as {kept}, and counting begins anew"
        return (said,) if kept else ()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def leave(self) -> None:
        """For a process that ends right after: fold the log into the file only where it has grown.

        What is committed is durable in the log, and folding it takes three more waits for the disk.
        """
        try:
            grown = os.stat(f"{self._path}-wal").st_size > LOG_BYTES
        except OSError:  # the file was set aside
            grown = False
        if grown:
            self._connection.close()
        else:
            _left_open.append(self._connection)


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def is_damage(error: BaseException | None) -> bool:
    """The file holds no database, or a broken one; one that is locked or out of reach is an `OperationalError`."""
    return type(error) is sqlite3.DatabaseError


def _begin_anew(path: str, seen: int) -> str:
    """Set the file of this number aside for an empty one; where it is now, "" if another process has done so."""
    import fcntl
    from pathlib import Path

    from lopen.store.folder import quarantine_file

    if why := unkept():
        raise StoreUnreachable(f"whether {path} is yours cannot be told: {why}")
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if _file_number(path) != seen:
            return ""
        kept = quarantine_file(Path(path), Path(path).parent)
        _migrate(path)
        return str(kept)
    finally:
        os.close(folder)


def _file_number(path: str) -> int:
    """The file's number in its file system; one that is set aside keeps it."""
    return os.stat(path).st_ino


def _migrate(path: str) -> None:
    """Make or update the database the ordinary, slower way."""
    from pathlib import Path

    from lopen.core.errors import StorageError
    from lopen.store.database import Database

    try:
        Database(Path(path), timeout_s=1.0).close()
    except StorageError as error:
        raise StoreUnreachable(error.message) from error
