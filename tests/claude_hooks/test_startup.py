"""The hook path is quick: the standard library alone, and little of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

from lopen.claude_hooks.install import hook_command, install, settings_path
from tests.claude_hooks.process import ROOT, HookedProject

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


EVENT = json.dumps({"session_id": "abc", "tool_name": "Read", "tool_input": {"file_path": "a"}})
PLANTED = "import os; open(os.environ['PLANTED'], 'w').close()\n"


def shell(command: str, project: HookedProject, **more: str) -> subprocess.CompletedProcess[str]:
    """A command run as Claude Code runs a hook."""
    return subprocess.run(
        ["/bin/sh", "-c", command],
        input=EVENT,
        capture_output=True,
        text=True,
        cwd=project.root,
        env=project.env() | more,
        timeout=120,
        check=False,
    )


def test_an_installed_hook_runs_nothing_that_the_project_brings(project: HookedProject) -> None:
    install(project.root)
    hooks = json.loads(settings_path(project.root).read_text())["hooks"]["PreToolUse"]
    for name in ("json", "_json", "sitecustomize", "usercustomize", "_sqlite3", "lopen/__init__", "site"):
        file = project.root / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(PLANTED)
    (project.root / "own.pth").write_text(PLANTED)
    planted = project.root / "planted"
    brought = {"PYTHONPATH": str(project.root), "PYTHONSTARTUP": str(project.root / "json.py")}
    done = [
        shell(hooks[0]["hooks"][0]["command"], project, PLANTED=str(planted), **brought) for _ in range(5)
    ]
    assert not planted.exists()
    assert ["deny" in ran.stdout for ran in done] == [False] * 4 + [True], done[0].stderr


def test_an_installed_hook_of_another_lopen_gives_way_to_the_one_on_path(project: HookedProject) -> None:
    done = shell(hook_command("stop", "echo", "/not/there/python"), project)
    assert (done.returncode, done.stdout) == (0, "hook stop\n")


def test_compiled_modules_hold_until_a_source_changes(project: HookedProject) -> None:
    """Three hooks import the modules, load them compiled, and load none that is damaged or older than its source."""
    copied = project.root.parent / "lopen"
    shutil.copytree(ROOT / "lopen", copied, ignore=shutil.ignore_patterns("__pycache__", "templates", "*.js"))
    hook = [sys.executable, "-I", "-S", "-v", str(copied / "claude_hooks" / "hook.py"), "pre-tool-use"]
    entry = copied / "claude_hooks" / "entry.py"

    def imported() -> tuple[bool, str]:
        done = subprocess.run(
            hook,
            input=EVENT,
            capture_output=True,
            text=True,
            cwd=project.root,
            env=project.env(),
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        return "import 'lopen.claude_hooks.entry'" in done.stderr, done.stdout

    assert imported()[0]
    assert not imported()[0]
    [compiled] = (copied / "claude_hooks" / "__pycache__").glob("hook_modules.*")
    compiled.write_bytes(compiled.read_bytes()[:-1_000])
    assert imported()[0]
    assert not imported()[0]
    later = copied / "claude_hooks" / "connection.py"
    later.write_text(later.read_text() + "\nraise RuntimeError('read anew')\n")
    anew, said = imported()
    assert (anew, "read anew" in said) == (False, True)
    entry.write_text(entry.read_text() + "\nEVENTS = {}\n")
    assert imported()[0]
    assert not imported()[0]
    os.utime(entry, (0, 0))
    assert imported()[0]


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
        timeout=120,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "lopen.limits.breaker" in loaded
    assert loaded & HEAVY == set()
    assert not any(name.startswith(("lopen.settings", "lopen.cli", "lopen.store")) for name in loaded)
