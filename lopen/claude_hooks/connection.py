"""A lean way to `state.db` for a hook: no migration files read, no path library loaded.

Where the schema is not the present one, `lopen.storage.database` migrates it or says that it is newer.
"""

from __future__ import annotations

import os
import sqlite3

import lopen
from lopen.base.errors import StoreUnreachable
from lopen.base.owner_seal import is_own, unkept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def present_schema() -> int:
    """The number of the newest migration."""
    folder = os.path.join(os.path.dirname(lopen.__file__), "storage", "migrations")
    return max(int(name.partition("_")[0]) for name in os.listdir(folder) if name.endswith(".sql"))


class LeanDatabase:
    """What `SqliteStore` needs of a database, one transaction at a time."""

    def __init__(self, path: str, timeout_s: float) -> None:
        """StoreUnreachable where there is no database that this version can use."""
        try:
            if not os.path.exists(path):
                _migrate(path)
            self._connection = _connected(path, timeout_s)
            if not is_own(self._connection):  # it came with the repository: its limits are nobody's
                self._connection.close()
                _begin_anew(path)
                self._connection = _connected(path, timeout_s)
            if self._version() != present_schema():
                self._connection.close()
                _migrate(path)
                self._connection = _connected(path, timeout_s)
        except (sqlite3.Error, OSError) as error:
            raise StoreUnreachable(f"{path}: {error}") from error

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    @property
    def connection(self) -> sqlite3.Connection:
        """For reading."""
        return self._connection

    def transaction(self) -> _Transaction:
        """All or nothing, durable at the end."""
        return _Transaction(self._connection)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


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


def _connected(path: str, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None)
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def _begin_anew(path: str) -> None:
    from pathlib import Path

    from lopen.storage.folder import quarantine_file

    if why := unkept():
        raise StoreUnreachable(f"whether {path} is yours cannot be told: {why}")
    quarantine_file(Path(path), Path(path).parent)
    _migrate(path)


def _migrate(path: str) -> None:
    """Make or update the database the ordinary, slower way."""
    from pathlib import Path

    from lopen.base.errors import StorageError
    from lopen.storage.database import Database

    try:
        Database(Path(path), timeout_s=1.0).close()
    except StorageError as error:
        raise StoreUnreachable(error.message) from error
