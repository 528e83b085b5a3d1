"""A project with everything that is protected, and a folder outside with something worth stealing."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.files.workspace import Workspace


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("SECRET")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "project"
    for name, content in {
        "src/app.py": "print('hello')\n",
        "README.md": "# project\n",
        "specs/auth/SPECIFICATION.md": "# Auth\n",
        ".lopen/state.db": "state",
        ".lopen/config.toml": "",
        ".git/config": "[core]\n",
        ".claude/settings.json": "{}",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root, lambda: [str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()])
