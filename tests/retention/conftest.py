"""A project's `.lopen/` with a store, and an upkeep of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lopen.core.clock import FakeClock
from lopen.retention.policy import RetentionPolicy
from lopen.retention.upkeep import Upkeep
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session
from tests.store.history import NOW

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
    def make(policy: RetentionPolicy | None = None, session: Session | None = None) -> Upkeep:
        return Upkeep(
            store, folder, policy or RetentionPolicy(), clock, warn=warnings.append, session=session
        )

    return make
