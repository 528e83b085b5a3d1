"""The real command in a real project, with a person's folders of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.preloaded.shared import run_lopen

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 30


class Lopen(Protocol):
    """Runs one command line in the project."""

    def __call__(
        self, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """An environment that knows nothing of the machine's own configuration, keys or git identity."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
    }


@pytest.fixture
def project(tmp_path: Path, surroundings: dict[str, str]) -> Path:
    """An empty git repository."""
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env=surroundings)
    return folder


@pytest.fixture
def lopen(project: Path, surroundings: dict[str, str]) -> Lopen:
    def run(
        *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        ran = run_lopen(cwd or project, surroundings | dict(env or {}), arguments)
        return subprocess.CompletedProcess(arguments, ran.code, ran.out, ran.err)

    return run


def json_lines(text: str) -> list[dict[str, Any]]:
    """Every line of standard output under `--json`, each with the fields that all of them have."""
    lines = [json.loads(line) for line in text.splitlines()]
    assert all({"ts", "event", "session"} <= set(line) for line in lines)
    return lines


def doctor_report(lopen: Lopen, *arguments: str, env: dict[str, str] | None = None) -> dict[str, str]:
    lines = json_lines(lopen("doctor", "--json", *arguments, env=env).stdout)
    return {line["check"]: line["status"] for line in lines}
