"""A database in a temporary folder, what it was asked to do, and an upkeep of a project's `.lopen/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lopen.settings.schema import Settings
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.store.upkeep import STATE_BYTES, Upkeep
from lopen.workflow.session import Session
from tests.fakes import FakeClock
from tests.store.history import NOW


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


MakeUpkeep = Callable[..., Upkeep]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".lopen"


@pytest.fixture
def store(folder: Path) -> Iterator[SessionStore]:
    database = Database(folder / "state.db")
    yield SessionStore(database)
    database.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def make_upkeep(store: SessionStore, folder: Path, clock: FakeClock, warnings: list[str]) -> MakeUpkeep:
    def make(
        settings: Settings | None = None, session: Session | None = None, state_bytes: int = STATE_BYTES
    ) -> Upkeep:
        return Upkeep(
            store,
            folder,
            settings or Settings(),
            clock,
            warn=warnings.append,
            session=session,
            state_bytes=state_bytes,
        )

    return make
