"""One world for all attempts of a test process; each attempt starts with a fresh project in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.world import World, a_world


@pytest.fixture(scope="session")
def surroundings() -> Iterator[World]:
    with a_world() as world:
        yield world


@pytest.fixture
def world(surroundings: World) -> World:
    surroundings.renew()
    return surroundings
