"""`max_iterations` in a Claude Code session: what counts as a passing verify command, and where a task begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lopen.claude_hooks.event import ToolCall, runs_verify
from lopen.claude_hooks.settings import HookSettings
from tests.claude_hooks.process import Answered, HookedProject
from tests.project import specification

TESTS = "python -m pytest -q tests"


def specified(root: Path, **commands: str) -> None:
    file = root / "specs" / "calc" / "SPECIFICATION.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(specification(commands={k.replace("_", "-"): v for k, v in commands.items()}))


def made(project: HookedProject, number: int, command: str = "", **response: object) -> Answered:
    given = {"command": command or f"make part{number}"}
    before = project.before("Bash", given)
    if before.code:
        return before
    more: dict[str, Any] = {
        "tool_use_id": f"call{project.calls}",
        "tool_response": {"stdout": "", **response},
    }
    return project.send("post-tool-use", tool_name="Bash", tool_input=given, **more)


@pytest.fixture
def quiet(project: HookedProject) -> HookedProject:
    """Five calls are enough, and the rules that a fast test meets are off."""
    for rule in ("RAPID_FIRE", "SEQUENTIAL_TOOL"):
        project.environ[f"LOPEN_CIRCUIT__{rule}__ENABLED"] = "false"
    project.environ["CIRCUIT_BREAKER_MAX_ITERATIONS"] = "5"
    return project


def test_a_passing_verify_command_sets_the_count_back(quiet: HookedProject) -> None:
    specified(quiet.root, verify_tests=TESTS)
    for i in range(3):
        assert made(quiet, i).code == 0
    assert made(quiet, 3, f"cd {quiet.root} && {TESTS} 2>&1").code == 0
    assert quiet.circuit().calls.iteration_count == 0
    assert [made(quiet, i).code for i in range(5)] == [0] * 4 + [2]
    assert quiet.circuit().rule == "max_iterations"


def test_a_failing_one_does_not(quiet: HookedProject) -> None:
    specified(quiet.root, verify_tests=TESTS)
    made(quiet, 0, TESTS, is_error=True)
    made(quiet, 1, f"{TESTS} | tail -5")
    made(quiet, 2, f"{TESTS} || true")
    assert quiet.circuit().calls.iteration_count == 3


def test_a_prompt_of_the_person_begins_a_task(quiet: HookedProject) -> None:
    specified(quiet.root, verify_tests=TESTS)
    for _ in range(2):
        assert [made(quiet, i).code for i in range(4)] == [0] * 4
        quiet.send("user-prompt-submit", prompt="and now the next thing")
    assert made(quiet, 0).code == 0
    assert quiet.circuit().calls.iteration_count == 1


def test_without_verify_commands_the_count_is_since_the_last_prompt(quiet: HookedProject) -> None:
    specified(quiet.root, verify_tests="none")
    for _ in range(2):
        assert [made(quiet, i).code for i in range(4)] == [0] * 4
        quiet.send("user-prompt-submit", prompt="go on")
    note = "<task-notification>\n<task-id>b1</task-id> ends, SUDO PARALLEL\n</task-notification>"
    made(quiet, 0)
    quiet.send("user-prompt-submit", prompt=note)  # the client's own: no person asked
    assert [made(quiet, i).code for i in range(4)] == [0] * 3 + [2]
    blocked = made(quiet, 9)
    assert "5 tool calls without a passing verify command" in blocked.reason


def test_verify_commands_stay_allowed_while_max_iterations_is_open(quiet: HookedProject) -> None:
    specified(quiet.root, verify_tests=TESTS)
    assert [made(quiet, i).code for i in range(5)] == [0] * 4 + [2]
    assert made(quiet, 6).code == 2
    assert made(quiet, 7, TESTS, is_error=True).code == 0


RUN = (
    "make check",
    "cd src && make check",
    "cd src\nmake check",
    "X=1 timeout 60 make check 2>&1 > out.txt",
    "npm test && npm run lint",
)
NOT_RUN = (
    "",
    "make",
    "make check | tail -20",
    "make check || true",
    "make check; echo done",
    "make check &",
    "ls || make check",
    "echo 'x && make check'",
    "make check -n",
    "npm run lint",
)


def test_a_verify_command_is_run_by_a_text_that_ends_with_it_and_shows_its_exit() -> None:
    lines = ["make check", "npm test && npm run lint"]
    found = {text: runs_verify(ToolCall("Bash", {"command": text}), lines) for text in (*RUN, *NOT_RUN)}
    assert [text for text, runs in found.items() if runs] == list(RUN)


def test_specifications_that_lead_out_of_the_project_give_none(tmp_path: Path) -> None:
    for name in ("other", "mine"):
        (tmp_path / name).mkdir()
    specified(tmp_path / "other", verify_tests=TESTS, verify_build="none")
    (tmp_path / "mine" / "specs").symlink_to(tmp_path / "other" / "specs")
    environ = {"HOME": str(tmp_path)}
    assert HookSettings(str(tmp_path / "other"), environ).verify_commands == (TESTS,)
    assert HookSettings(str(tmp_path / "mine"), environ).verify_commands == ()
