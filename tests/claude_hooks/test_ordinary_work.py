"""Ordinary work is not held: parallel agents, polling, test-driven work, agents in the background, external programs."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from lopen.claude_hooks.event import MARK, runs
from tests.claude_hooks.process import HookedProject


@pytest.fixture
def quick(project: HookedProject) -> HookedProject:
    """The rules that a fast test meets are off."""
    for rule in ("RAPID_FIRE", "SEQUENTIAL_TOOL"):
        project.environ[f"LOPEN_CIRCUIT__{rule}__ENABLED"] = "false"
    project.environ["LOPEN_RESOURCES__AGENT_SPAWN_COOLDOWN_S"] = "0"
    return project


def called(project: HookedProject, tool: str, given: dict[str, Any], **response: Any) -> int:
    code = project.before(tool, given).code
    if not code:
        name: dict[str, Any] = {"tool_use_id": f"call{project.calls}", "tool_name": tool, "tool_input": given}
        project.send("post-tool-use", tool_response=response, **name)
    return code


def test_five_agents_with_the_same_command_are_no_row(quick: HookedProject) -> None:
    given: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "git status"}}
    codes = [
        quick.send("pre-tool-use", agent_id=f"a{i % 5}", tool_use_id=str(i), **given).code for i in range(20)
    ]
    assert codes == [0] * 20
    assert quick.send("pre-tool-use", agent_id="a0", tool_use_id="more", **given).code == 2


def test_polling_is_no_row_while_the_output_grows(quick: HookedProject) -> None:
    poll = {"task_id": "b1"}
    assert [called(quick, "TaskOutput", poll, output="x" * i) for i in range(8)] == [0] * 8
    assert [called(quick, "TaskOutput", poll, output="same") for _ in range(6)] == [0] * 5 + [2]


@pytest.mark.parametrize(
    ("editor", "named"), [("Edit", "file_path"), ("mcp__serena__replace_regex", "relative_path")]
)
def test_red_runs_with_edits_between_are_no_failures(quick: HookedProject, editor: str, named: str) -> None:
    subprocess.run(["git", "init", "-q", str(quick.root)], check=True)
    given: dict[str, Any] = {"command": "pytest -q"}

    def red() -> None:
        assert quick.before("Bash", given).code == 0
        ended: dict[str, Any] = {
            "tool_name": "Bash",
            "tool_input": given,
            "tool_use_id": f"call{quick.calls}",
        }
        quick.send("post-tool-use-failure", error="Exit code 1", **ended)

    for _ in range(6):
        red()
        assert called(quick, editor, {named: "a.py", "old_string": "x", "new_string": "y"}) == 0
    assert quick.circuit().state == "closed"


def test_agents_in_the_background_count_while_they_run_and_the_sixth_raises_an_alert(
    quick: HookedProject,
) -> None:
    def start(number: int) -> int:
        given: dict[str, Any] = {"prompt": f"part {number}", "run_in_background": True}
        code = quick.before("Agent", given).code
        if not code:
            quick.send("subagent-start", agent_id=f"a{number}")
            response = {"status": "async_launched", "isAsync": True, "agentId": f"a{number}"}
            name: dict[str, Any] = {
                "tool_use_id": f"call{quick.calls}",
                "tool_name": "Agent",
                "tool_input": given,
            }
            quick.send("post-tool-use", tool_response=response, **name)
        return code

    assert [start(i) for i in range(7)] == [0] * 5 + [2, 2]
    refused = quick.before("Agent", {"prompt": "once more"})
    assert "5 sub-agents run" in refused.reason
    assert "SUDO PARALLEL" in refused.reason
    assert "Cooldown" not in refused.reason
    assert [a.alert_type for a in quick.store().alerts()] == ["circuit_tripped"]
    quick.send("subagent-stop", agent_id="a2")
    assert called(quick, "Read", {"file_path": "x"}) == 0
    quick.send("stop", background_tasks=[{"id": "a1", "type": "subagent", "status": "running"}])
    quick.environ["LOPEN_CIRCUIT__AGENT_SPAWN__ENABLED"] = "false"
    assert [start(i) for i in range(10, 15)] == [0] * 4 + [2]


def test_the_program_that_runs_is_what_counts() -> None:
    external = (
        "oracle.py --ask x",
        "timeout 10 uv run ./oracle.py a",
        "env X=1 nice -n 5 python -u oracle.py",
    )
    assert all(runs(words.split(), ["oracle.py"]) for words in external)
    others = ("cat oracle.py", "python edit.py oracle.py")
    assert not any(runs(words.split(), ["oracle.py"]) for words in others)


def test_refused_external_calls_do_not_count_and_other_calls_go_on(quick: HookedProject) -> None:
    codes = [quick.bash(f"python oracle.py {i}").code for i in range(13)]
    assert codes == [0] * 10 + [2] * 3
    assert quick.bash("cat oracle.py").code == 0
    assert quick.before("Read", {"file_path": "a"}).code == 0
    assert quick.circuit().external_total == 10


def test_a_hook_inside_a_hook_counts_by_its_mark(quick: HookedProject) -> None:
    quick.environ[MARK] = "outer"
    codes = [quick.before("Read", {"file_path": str(i)}, session=f"inner{i}").code for i in range(6)]
    assert codes == [0] * 5 + [2]
    assert quick.circuit("outer").rule == "hook_recursion"
    del quick.environ[MARK]
    assert quick.before("Read", {"file_path": "a"}, session="free").code == 0
