"""The hook path is quick: the standard library alone, and little of it."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.claude_hooks.process import HookedProject

HEAVY = {
    "pydantic",
    "rich",
    "typer",
    "redis",
    "contextlib",
    "dataclasses",
    "datetime",
    "enum",
    "json",
    "re",
    "sqlite3",
    "typing",
    "pathlib",
    "inspect",
    "tomllib",
    "importlib.resources",
    "shlex",
    "_hashlib",
}
LISTING = """
import sys
from lopen.claude_hooks import entry
code = entry.main(["pre-tool-use"], sys.stdin, sys.stdout, sys.stderr)
print("\\n".join(sys.modules))
sys.exit(code)
"""


def test_a_call_loads_neither_third_party_nor_heavy_standard_modules(project: HookedProject) -> None:
    event = {"session_id": "abc", "tool_name": "Read", "tool_input": {"file_path": "a"}}
    project.before("Read", {"file_path": "a"})
    done = subprocess.run(
        [sys.executable, "-S", "-c", LISTING],  # without what an editable install loads at every start
        input=json.dumps(event),
        capture_output=True,
        text=True,
        cwd=project.root,
        env=project.env(),
        timeout=30,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "lopen.limits.circuits.breaker" in loaded
    assert loaded & HEAVY == set()
    assert not any(name.startswith(("lopen.settings", "lopen.cli", "lopen.storage")) for name in loaded)
