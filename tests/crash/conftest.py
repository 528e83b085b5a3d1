"""A place to build in, made once for a module of tests: the preloaded lopen, the endpoint, the approved project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.crash.building import Site, Standard
from tests.crash.sweep import sites
from tests.preloaded import watched


@dataclass(frozen=True)
class Place:
    """Where builds are disturbed, and what an undisturbed one leaves."""

    site: Site
    standard: Standard


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    if why := watched.available():
        pytest.skip(why)
    with sites(1) as (site,):
        yield Place(site, site.standard())
