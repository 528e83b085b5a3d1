"""Who is a person: not a Claude Code session, however its commands reach lopen."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lopen.core.errors import ExitCode
from tests.claude_hooks.process import HookedProject

EXTEND = [
    *[sys.executable, "-m", "lopen", "budget", "extend", "session:abc"],
    *["--tokens", "1000", "--reason", "because"],
]
LINE = f"{shlex.join(EXTEND)}; exit $?"
SPENT = {"usage": {"input_tokens": 400_000}}
SCRIPT = 'import { spawnSync } from "node:child_process";\n'


@pytest.fixture
def spent(project: HookedProject) -> HookedProject:
    project.send("post-tool-use", tool_name="T", tool_input={}, tool_response=SPENT)
    return project


def given(project: HookedProject, argv: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=project.root,
        env=project.env() | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(project: HookedProject, ran: subprocess.CompletedProcess[str]) -> bool:
    said = "inside a Claude Code session" in ran.stderr and "Claude Code did not start" in ran.stderr
    assert said is (ran.returncode != ExitCode.OK), ran.stderr
    assert (project.budget().max_tokens == 2_000_000) is said
    return said


@pytest.mark.parametrize("variables", [{"CLAUDECODE": "1"}, {"CLAUDE_CODE_ENTRYPOINT": "cli"}])
def test_a_script_that_a_session_runs_may_not_extend_its_budget(
    spent: HookedProject, variables: dict[str, str]
) -> None:
    (spent.root / "a.sh").write_text(f"{LINE}\n")
    assert refused(spent, given(spent, ["sh", "a.sh"], **variables))


def test_without_its_variables_the_claude_process_above_tells(spent: HookedProject) -> None:
    assert refused(spent, given(spent, ["bash", "-c", f"exec -a claude bash -c {shlex.quote(LINE)}"]))


def test_a_runtime_that_runs_claude_codes_script_tells_too(spent: HookedProject, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    script = tmp_path / "node_modules" / "@anthropic-ai" / "claude-code" / "cli.mjs"
    script.parent.mkdir(parents=True)
    call = f"process.exit(spawnSync({EXTEND[0]!r}, {EXTEND[1:]!r}, {{stdio: 'inherit'}}).status)\n"
    script.write_text(SCRIPT + call)
    assert refused(spent, given(spent, [node, str(script)]))


def test_a_person_beside_claude_code_is_a_person(spent: HookedProject) -> None:
    """Settings for Claude Code, and processes that only name it, make no session."""
    command = ["bash", "-c", f"exec -a 'tmux: claude' bash -c {shlex.quote(LINE)} claude"]
    assert not refused(spent, given(spent, command, CLAUDE_CODE_USE_BEDROCK="1", CLAUDE_CONFIG_DIR="/tmp/c"))
