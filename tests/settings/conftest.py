"""A person's own folders and a project, both empty, for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configuration and data folders of the person."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".lopen").mkdir(parents=True)
    return folder


@pytest.fixture
def theirs(project: Path) -> Write:
    """Writes the project's configuration."""

    def write(text: str) -> Path:
        path = project / ".lopen" / "config.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def own(home: Path) -> Write:
    """Writes the person's configuration."""

    def write(text: str) -> Path:
        path = home / "config" / "lopen" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
