from __future__ import annotations

from pathlib import Path

import pytest

from tests.claude_hooks.process import HookedProject


@pytest.fixture
def project(tmp_path: Path) -> HookedProject:
    return HookedProject(tmp_path / "project")
