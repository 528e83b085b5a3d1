"""The hook path is quick: the standard library alone, and little of it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.hooks.process import COMMAND, HookedProject

HEAVY = {
    "pydantic",
    "rich",
    "typer",
    "redis",
    "dataclasses",
    "typing",
    "pathlib",
    "inspect",
    "tomllib",
    "importlib.resources",
    "shlex",
}
LISTING = """
import sys
from lopen.hooks import entry
code = entry.main(["pre-tool-use"], sys.stdin, sys.stdout, sys.stderr)
print("\\n".join(sys.modules))
sys.exit(code)
"""


def test_a_call_loads_neither_third_party_nor_heavy_standard_modules(project: HookedProject) -> None:
    event = {"session_id": "abc", "tool_name": "Read", "tool_input": {"file_path": "a"}}
    project.before("Read", {"file_path": "a"})
    done = subprocess.run(
        [sys.executable, "-c", LISTING],
        input=json.dumps(event),
        capture_output=True,
        text=True,
        cwd=project.root,
        env=project.env(),
        timeout=30,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "lopen.limits.breaker" in loaded
    assert loaded & HEAVY == set()
    assert not any(name.startswith(("lopen.settings", "lopen.cli", "lopen.storage")) for name in loaded)


def test_the_whole_process_takes_at_most_four_times_a_bare_python(
    project: HookedProject, tmp_path: Path
) -> None:
    project.environ |= {"PYTHONPYCACHEPREFIX": str(tmp_path / "pyc"), "PYTHONDONTWRITEBYTECODE": ""}
    project.environ |= {
        "CIRCUIT_BREAKER_RAPID_FIRE_THRESHOLD": "1000",
        "LOPEN_CIRCUIT__SEQUENTIAL_TOOL__ENABLED": "false",
    }
    bare: list[float] = []
    hook: list[float] = []
    for number in range(21):
        event = {"session_id": "abc", "tool_name": "Read", "tool_input": {"file_path": f"a{number}"}}
        for times, command in ((bare, [sys.executable, "-c", "pass"]), (hook, [*COMMAND, "pre-tool-use"])):
            began = time.perf_counter()
            subprocess.run(
                command,
                input=json.dumps(event).encode(),
                cwd=project.root,
                env=project.env(),
                check=True,
                timeout=30,
            )
            times.append(time.perf_counter() - began)
    assert statistics.median(hook) <= 4 * statistics.median(bare)
