"""Circuits and sub-agents as hook processes see them: each call is a process of its own, and all count together."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lopen.limits import admin_actions
from tests.claude_hooks.process import HookedProject, message


def test_the_fifth_identical_call_is_blocked_until_a_person_acknowledges(project: HookedProject) -> None:
    codes = [project.before("Read", {"file_path": f"{'./' * i}a.py"}).code for i in range(5)]
    assert codes == [0, 0, 0, 0, 2]
    blocked = project.before("Edit", {"file_path": "b.py"})
    assert blocked.code == 2
    for said in (
        "Circuit breaker tripped: Read was called 5 times in a row",
        "lopen circuit ack",
    ):
        assert said in blocked.err
    admin_actions.acknowledge_circuit(project.store(), "session:abc", datetime.now(UTC))
    assert project.before("Edit", {"file_path": "b.py"}).code == 0
    beside = project.before("Edit", {"file_path": "c.py"})
    assert (beside.code, "one call (Edit) is being tried" in beside.err, "Cooldown" in beside.err) == (
        2,
        True,
        False,
    )
    probe: dict[str, Any] = {
        "tool_name": "Edit",
        "tool_input": {"file_path": "b.py"},
        "tool_response": {"success": True},
    }
    assert project.send("post-tool-use", **probe).code == 0
    assert project.circuit().state == "closed"


def test_four_failures_of_a_tool_trip_also_when_only_the_transcript_shows_them(
    project: HookedProject,
) -> None:
    where = str(project.transcript)
    codes = []
    for i in range(5):
        answered = project.bash(f"make step{i}", transcript_path=where)
        codes.append(answered.code)
        failed = {"type": "tool_result", "tool_use_id": f"call{i + 1}", "is_error": True}
        project.says(message(f"m{i}", 1), {"type": "user", "message": {"content": [failed]}})
    assert codes == [0, 0, 0, 0, 2]
    assert project.circuit().rule == "tool_failure"


def test_six_agents_at_once_are_held_back_and_sudo_parallel_lets_them(project: HookedProject) -> None:
    project.environ["LOPEN_RESOURCES__AGENT_SPAWN_COOLDOWN_S"] = "0"
    codes = [project.before("Task", {"prompt": f"part {i}"}).code for i in range(6)]
    assert codes == [0] * 5 + [2]
    lifted = project.send("user-prompt-submit", session="free", prompt="all of it, SUDO PARALLEL")
    assert "SUDO PARALLEL" in lifted.err
    burst = [project.before("Task", {"prompt": f"part {i}"}, session="free").code for i in range(8)]
    assert burst == [0] * 8
    assert "override" in [i.rule for i in project.store().incidents("session:free")]
    project.send("user-prompt-submit", session="free", prompt="and now calmly")
    assert project.before("Task", {"prompt": "one more"}, session="free").code == 2


def test_agents_that_were_refused_or_went_with_their_process_leave_room(project: HookedProject) -> None:
    project.environ["LOPEN_RESOURCES__AGENT_SPAWN_COOLDOWN_S"] = "0"
    project.environ["LOPEN_CIRCUIT__AGENT_SPAWN__ENABLED"] = "false"
    for i in range(5):
        assert project.before("Task", {"prompt": f"part {i}"}).code == 0
    assert project.before("Task", {"prompt": "one too many"}).code == 2
    denied = {"type": "tool_result", "tool_use_id": "call2", "is_error": True, "content": "denied"}
    project.says({"type": "user", "sessionId": "abc", "message": {"role": "user", "content": [denied]}})
    again = {"transcript_path": str(project.transcript)}
    assert project.before("Task", {"prompt": "in its place"}, **again).code == 0
    assert project.before("Task", {"prompt": "one too many"}).code == 2
    project.send("session-start", source="compact")
    assert project.before("Task", {"prompt": "still too many"}).code == 2
    project.send("session-start", source="resume")
    assert project.before("Task", {"prompt": "after a new start"}).code == 0


def acknowledged_agent(project: HookedProject) -> None:
    """The circuit tripped, a person acknowledged, and a sub-agent is the probe."""
    for i in range(5):
        project.before("Read", {"file_path": f"{'./' * i}a.py"})
    admin_actions.acknowledge_circuit(project.store(), "session:abc", datetime.now(UTC))
    assert project.before("Task", {"prompt": "look"}, tool_use_id="task").code == 0


def test_a_sub_agent_that_is_the_probe_makes_its_own_calls(project: HookedProject) -> None:
    acknowledged_agent(project)
    for name in "bcd":
        assert project.before("Read", {"file_path": name}).code == 0
        ended: dict[str, Any] = {"tool_name": "Read", "tool_input": {"file_path": name}, "tool_response": {}}
        project.send("post-tool-use", tool_use_id=f"call{project.calls}", **ended)
    assert project.circuit().state == "half_open"
    done: dict[str, Any] = {"tool_name": "Task", "tool_input": {"prompt": "look"}}
    assert project.send("post-tool-use", tool_use_id="task", tool_response={}, **done).code == 0
    assert project.circuit().state == "closed"


def test_beside_a_sub_agent_that_is_told_apart_the_main_thread_waits(project: HookedProject) -> None:
    acknowledged_agent(project)
    assert project.before("Read", {"file_path": "b"}, agent_id="a1").code == 0
    beside = project.before("Read", {"file_path": "c"})
    assert (beside.code, "one call (Task) is being tried" in beside.err) == (2, True)
    assert project.before("Read", {"file_path": "d"}, agent_id="a1").code == 0
