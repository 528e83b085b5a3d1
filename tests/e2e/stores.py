"""The limits' store in both kinds, for tests that drive the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.limits.redis_server import RedisServer

KINDS = ("sqlite", "redis")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may hang or stop."""
    server = RedisServer(tmp_path)
    yield server
    server.stop()


@pytest.fixture(params=KINDS)
def kept_in(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment that names the store."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield {}
            return
        server = RedisServer(tmp_path)
        stack.callback(server.stop)
        yield {"LOPEN_BUDGET__STORE": server.url}
