"""Installing an extra: the command fits where lopen was installed from."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from lopen.core.errors import install_command


class Installed:
    def __init__(self, direct_url: str | None) -> None:
        self._direct_url = direct_url

    def read_text(self, name: str) -> str | None:
        return self._direct_url if name == "direct_url.json" else None


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        (['{"url": "file:///src/my%20lopen", "dir_info": {}}'], "'/src/my lopen[serve]'"),
        ([None, '{"url": "file:///src/lopen", "dir_info": {"editable": true}}'], "-e '/src/lopen[serve]'"),
        (['{"url": "file:///tmp/lopen-1-py3-none-any.whl"}'], "'/tmp/lopen-1-py3-none-any.whl[serve]'"),
        ([None], "'lopen[serve]'"),
    ],
)
def test_the_command_names_where_lopen_came_from(
    monkeypatch: pytest.MonkeyPatch, told: list[str | None], wanted: str
) -> None:
    monkeypatch.setattr(metadata, "distributions", lambda name: [Installed(text) for text in told])
    monkeypatch.setattr(sys, "executable", "/venv/bin/python")
    assert install_command("serve") == f"/venv/bin/python -m pip install {wanted}"
