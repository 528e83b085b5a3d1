"""The hooks in the real Claude Code, headless, against a scripted endpoint: what they block is really not done."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lopen.models.messages import Usage
from tests.claude_hooks.claude_code import installed
from tests.claude_hooks.process import UNHURRIED
from tests.endpoint import Body, ScriptedEndpoint, text, tool_results, tools
from tests.fake_api import Message
from tests.project import Project
from tests.ran import HERE, Ran

RUNS_WITHIN_S = 240


@pytest.fixture(scope="session")
def claude() -> Path:
    return installed()


class Claude:
    """A project with lopen's hooks, and Claude Code in it."""

    def __init__(self, command: Path, folder: Path, endpoint: ScriptedEndpoint) -> None:
        self.command = str(command)
        self.endpoint = endpoint
        program = folder / "bin" / "lopen"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{HERE}" exec "{sys.executable}" -m lopen "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        self.project = Project(
            folder / "project",
            endpoint,
            PATH=path,
            DISABLE_AUTOUPDATER="1",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            **UNHURRIED,
        )
        for command_line in (("init",), ("hooks", "install")):
            ran = self.lopen(*command_line)
            assert ran.code == 0, ran.err

    def lopen(self, *arguments: str) -> Ran:
        return self.project.lopen(*arguments)

    def runs(self, *options: str, **variables: str) -> dict[str, Any]:
        """One headless run to its end; what it says of itself."""
        inherited = {name: "" for name in os.environ if name.startswith("CLAUDE")}
        done = subprocess.run(
            [self.command, "-p", "go on", "--output-format", "json", "--allowedTools", "Bash", *options],
            cwd=self.project.root,
            env=self.project.environment(**(inherited | variables)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUNS_WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def there(self, name: str) -> bool:
        return (self.project.root / name).exists()


MakeClaude = Callable[[list[Message]], Claude]


@pytest.fixture
def make_claude(claude: Path, tmp_path: Path) -> Iterator[MakeClaude]:
    with ExitStack() as stack:

        def make(script: list[Message]) -> Claude:
            side: tuple[Callable[[Body], bool], Message] = (lambda body: not body.get("tools"), text("aside"))
            endpoint = stack.enter_context(ScriptedEndpoint(script, routes=[side]))
            return Claude(claude, tmp_path, endpoint)

        yield make


def bash(command: str, tokens: int = 1_000) -> Message:
    given = {"command": command, "description": "a step"}
    return tools(("Bash", given), usage=Usage(tokens - 100, 100))


def test_a_person_s_command_is_blocked_and_the_rest_goes_on(make_claude: MakeClaude) -> None:
    claude = make_claude(
        [bash("touch before; lopen approve calc; touch after"), bash("touch harmless"), text("done")]
    )

    claude.runs()

    assert not claude.there("before")
    assert not claude.there("after")
    assert claude.there("harmless")
    blocked, allowed = tool_results(claude.endpoint.requests[-1])
    assert blocked.is_error
    assert "lopen approve is a person's command" in blocked.text
    assert not allowed.is_error
    assert "lopen guards this session" in json.dumps(claude.endpoint.requests[0])


def test_an_exhausted_budget_ends_the_loop_until_a_person_extends_it(make_claude: MakeClaude) -> None:
    steps = [bash(f"touch {name}", 9_000) for name in ("one", "two", "three", "four")]
    claude = make_claude([*steps, text("stopped"), text("stopped")])

    ran = claude.runs(TOKEN_BUDGET_SESSION_DEFAULT="20000")

    # The third call's own tokens may not stand in the transcript yet when its hook reads it
    assert len(claude.endpoint.requests) in (3, 4)
    assert not claude.there("four")
    budget = f"session:{ran['session_id']}"
    shown = {line["budget_id"]: line for line in claude.lopen("budget", "show", "--json").events}
    assert shown[budget]["tokens_used"] == 9_000 * len(claude.endpoint.requests)
    assert shown[budget]["agent"] == "claude-code"
    alerts = [line["alert_type"] for line in claude.lopen("alerts", "list", "--json").events]
    assert alerts == ["warning_threshold", "budget_exhausted"]
    made = len(claude.endpoint.requests)
    refused = claude.runs("--resume", ran["session_id"], TOKEN_BUDGET_SESSION_DEFAULT="20000")
    assert "lopen budget extend --tokens" in refused["result"]
    assert len(claude.endpoint.requests) == made

    extended = claude.lopen("budget", "extend", "--tokens", "60000", "--reason", "it is worth it")
    assert extended.code == 0, extended.err
    claude.runs("--resume", ran["session_id"], TOKEN_BUDGET_SESSION_DEFAULT="20000")
    assert len(claude.endpoint.requests) > made
