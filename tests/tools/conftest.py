"""A repository to work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.examples import project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "project")
