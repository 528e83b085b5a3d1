"""A place to build in, made once for the tests of this folder: the preloaded lopen, the endpoint, the approved project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.crash.building import FaultyModel, Site, Standard
from tests.crash.sweep import sites
from tests.preloaded import watched


@dataclass(frozen=True)
class Place:
    """Where builds are disturbed, the model behind them, and what an undisturbed one leaves."""

    site: Site
    model: FaultyModel
    standard: Standard


@pytest.fixture(scope="session")
def place() -> Iterator[Place]:
    if why := watched.available():
        pytest.skip(why)
    model = FaultyModel()
    with sites(1, model) as (site,):
        yield Place(site, model, site.standard())
