"""A database in a temporary folder, and what it was asked to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lopen.store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A new one, closed at the end."""
    opened = Database(tmp_path / "state.db")
    yield opened
    opened.close()


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Every statement that SQLite runs meanwhile, with its values filled in."""
    seen: list[str] = []
    database.connection.set_trace_callback(seen.append)
    try:
        yield seen
    finally:
        database.connection.set_trace_callback(None)


def writes(seen: list[str]) -> list[str]:
    """The statements that write rows, as verb and table."""
    return [" ".join(s.split()[: 3 if s.startswith("DELETE") else 5]) for s in seen if _writes(s)]


def _writes(statement: str) -> bool:
    return statement.startswith(("INSERT", "DELETE", "UPDATE"))
