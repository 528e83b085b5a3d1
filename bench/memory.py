"""The most memory that a run of fifty turns holds, the whole process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from bench.rows import Row
from bench.session import home, peak_mib
from tests.endpoint import ScriptedEndpoint, tools
from tests.project import Project, build, plan

TURNS = 50


def rows() -> Iterator[Row]:
    """Fifty turns that each read a file and run a command, then the task."""
    script: list[Any] = [plan()]
    for n in range(TURNS - 2):
        read = ("read_file", {"path": "README.md", "offset": 1, "limit": n + 1})
        script.append(tools(read, ("run_command", {"command": f"echo {n}"})))
    script.append(build("calc-t1"))
    with home() as folder, ScriptedEndpoint(script) as endpoint:
        project = Project(
            folder / "project", endpoint, LOPEN_SANDBOX__MODE="none", LOPEN_CIRCUIT__ENABLED="false"
        )
        project.specify()
        assert project.lopen("approve", "calc", "--yes").code == 0
        peak = peak_mib([sys.executable, "-m", "lopen", "run", "calc"], project)
        assert project.status()["status"] == "complete", os.fspath(project.root)
        yield Row(f"peak memory of a run of {TURNS} turns", peak, 130, "MiB")
