"""A hook's settings are the ordinary ones, and it starts within its time without what makes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lopen.claude_hooks.install import hook_command, install, settings_path
from lopen.claude_hooks.settings import HookSettings
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from tests.claude_hooks.process import HookedProject

PLANTED = "import os; open(os.environ['PLANTED'], 'w').close()\n"
EVENT = json.dumps({"session_id": "abc", "tool_name": "Read", "tool_input": {"file_path": "a"}})
LISTING = """
import sys
from lopen.__main__ import main
code = main(["hook", "pre-tool-use"])
print("\\n".join(sys.modules))
sys.exit(code)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "XDG_CONFIG_HOME" / "lopen").mkdir(parents=True)
    (tmp_path / "project" / ".lopen").mkdir(parents=True)
    return tmp_path


def loaded(home: Path, *, user: str = "", project: str = "", **variables: str) -> HookSettings:
    (home / "XDG_CONFIG_HOME" / "lopen" / "config.toml").write_text(user)
    (home / "project" / ".lopen" / "config.toml").write_text(project)
    kept = {name: os.environ[name] for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    return HookSettings(str(home / "project"), kept | variables)


def test_the_copy_follows_the_files_and_the_variables(home: Path) -> None:
    assert loaded(home)["circuit"] == Settings().circuit.model_dump(mode="json")
    user = "[budget]\nsession_tokens = 900_000\nttl_s = 50\n"
    assert loaded(home, user=user)["budget"]["session_tokens"] == 900_000
    project = "[budget]\nsession_tokens = 300_000\n"
    assert loaded(home, user=user, project=project)["budget"]["session_tokens"] == 300_000
    variables = {"TOKEN_BUDGET_SESSION_DEFAULT": "700000", "LOPEN_HOOKS__EXTERNAL_COMMANDS": '["a.py"]'}
    found = loaded(home, user=user, project=project, **variables)
    assert (found["budget"]["session_tokens"], found["budget"]["ttl_s"]) == (700_000, 50)
    assert found["hooks"]["external_commands"] == ["a.py"]


def test_a_place_with_a_wrong_setting_does_not_hold_and_is_said(home: Path) -> None:
    user = "[budget]\nsession_tokens = 900_000\n"
    found = loaded(home, user=user, project="[budget]\nsession_tokens = 0\n")  # unlimited: looser
    assert found["budget"]["session_tokens"] == 900_000
    assert "session_tokens" in found.faults[0]
    found = loaded(home, user=user, TOKEN_BUDGET_TTL="0")
    assert found["budget"]["session_tokens"] == 900_000
    assert "TOKEN_BUDGET_TTL" in found.faults[0]
    found = loaded(home, user="[budget")
    assert found["budget"]["session_tokens"] == Settings().budget.session_tokens
    assert "config.toml" in found.faults[0]


def test_the_password_of_a_store_is_not_copied(home: Path) -> None:
    assert loaded(home, user="[budget]\nstore = 'redis://:secret@h'\n")["budget"]["store"] == "redis"
    assert all(b"secret" not in file.read_bytes() for file in home.rglob("*.json"))


def test_prices_are_those_of_the_table(home: Path) -> None:
    found = loaded(home)
    usage = Usage(200_001, 100, 0, 0)
    assert found.cost_usd("claude-sonnet-4-5", usage, 200_001) == pytest.approx(
        200_001 * 6e-6 + 100 * 22.5e-6
    )
    assert found.cost_usd("claude-sonnet-4-5-20250929", usage, 1_000) == pytest.approx(
        200_001 * 3e-6 + 100 * 15e-6
    )
    assert found.cost_usd("somebody's own", usage, 1_000) is None


def test_an_ordinary_call_loads_neither_the_schema_nor_the_prices(project: HookedProject) -> None:
    project.before("Read", {"file_path": "a"})
    done = subprocess.run(
        [sys.executable, "-c", LISTING],
        input=EVENT,
        capture_output=True,
        text=True,
        cwd=project.root,
        env=project.env(),
        timeout=120,
        check=True,
    )
    names = set(done.stdout.split())
    assert "lopen.limits.circuits" in names
    assert names & {"pydantic", "genai_prices", "typer", "rich", "lopen.settings.schema"} == set()


def shell(command: str, project: HookedProject, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command as Claude Code runs a hook."""
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
    hooks: dict[str, Any] = json.loads(settings_path(project.root).read_text())["hooks"]
    for name in ("json", "sitecustomize", "usercustomize", "_sqlite3", "lopen/__init__", "site"):
        file = project.root / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(PLANTED)
    (project.root / "own.pth").write_text(PLANTED)
    planted = project.root / "planted"
    brought = {"PYTHONPATH": str(project.root), "PYTHONSTARTUP": str(project.root / "json.py")}
    command = hooks["PreToolUse"][0]["hooks"][0]["command"]
    done = [shell(command, project, PLANTED=str(planted), **brought) for _ in range(5)]
    assert not planted.exists()
    assert ["deny" in ran.stdout for ran in done] == [False] * 4 + [True], done[0].stderr


def test_an_installed_hook_of_another_lopen_gives_way_to_the_one_on_path(project: HookedProject) -> None:
    done = shell(hook_command("stop", "echo", "/not/there/python"), project)
    assert (done.returncode, done.stdout) == (0, "hook stop\n")
