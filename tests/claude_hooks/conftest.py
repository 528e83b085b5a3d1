from __future__ import annotations

from pathlib import Path

import pytest

from lopen.claude_hooks import bulk_commands
from tests.claude_hooks.process import HookedProject


@pytest.fixture
def project(tmp_path: Path) -> HookedProject:
    return HookedProject(tmp_path / "project")


@pytest.fixture(autouse=True)
def _git_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_commands, "GIT_WITHIN_S", 30)
