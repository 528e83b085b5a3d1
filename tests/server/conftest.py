"""Projects with a scripted endpoint, as in the end-to-end tests, and one browser for all tests of a process."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e.conftest import make_project
from tests.server.browser import opened_browser

__all__ = ["make_project"]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with opened_browser() as found:
        yield found
