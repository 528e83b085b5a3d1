"""The model room's tests: no network but loopback, no key from the surroundings, a model that reaches a scripted endpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lopen.core.clock import Clock, SystemClock
from lopen.models.anthropic_model import AnthropicModel
from lopen.models.messages import Request, SystemBlock, ToolSpec
from lopen.settings.schema import ModelSettings
from tests.no_network import forbidden_network

Reach = Callable[..., AnthropicModel]

WRITE_FILE = ToolSpec("write_file", "Writes a file.", {"type": "object", "properties": {}})


@pytest.fixture(autouse=True)
def loopback_only() -> Iterator[None]:
    with forbidden_network():
        yield


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Neither keys nor profiles of whoever runs the tests are seen."""
    for name in os.environ:
        if name.startswith(("ANTHROPIC_", "AWS_", "GOOGLE_", "CLOUD_ML_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path_factory.mktemp("no-profile")))


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reach]:
    """Makes models that reach `url`; they are closed at the end."""
    made: list[AnthropicModel] = []

    def make(
        url: str, *, clock: Clock | None = None, api_key: str = "test-key", **settings: Any
    ) -> AnthropicModel:
        if api_key:
            monkeypatch.setenv("ANTHROPIC_API_KEY", api_key)
        model = AnthropicModel(ModelSettings(base_url=url, **settings), {}, clock or SystemClock())
        made.append(model)
        return model

    yield make
    for model in made:
        model.close()


def request(words: str = "Begin.", **changes: Any) -> Request:
    """A small request of one user message."""
    fields: dict[str, Any] = {
        "model": "claude-test",
        "system": [SystemBlock("You are a test.")],
        "messages": [{"role": "user", "content": [{"type": "text", "text": words}]}],
        "tools": [WRITE_FILE],
    }
    return Request(**(fields | changes))


def ignore(text: str, tool: str = "") -> None:
    """Where the streamed text does not matter."""
