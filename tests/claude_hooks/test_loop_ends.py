"""The loop ends, a person is told, and work goes on after the person's command: each event a process of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from lopen.limits import admin_actions
from tests.claude_hooks.process import HookedProject, message


def exhaust(project: HookedProject) -> dict[str, str]:
    project.environ["TOKEN_BUDGET_SESSION_DEFAULT"] = "1000"
    project.says(message("m1", 2_000))
    return {"transcript_path": str(project.transcript)}


def test_a_used_up_budget_ends_the_loop_and_refuses_prompts_until_it_is_extended(
    project: HookedProject,
) -> None:
    where = exhaust(project)
    command = "lopen budget extend --tokens 3000"
    refused = project.bash("make", **where)
    assert refused.reason.splitlines()[0].startswith("Token budget exhausted (2,200 / 1,000 tokens used).")
    assert refused.reason.splitlines()[1].endswith(command)
    assert refused.stopped == refused.reason
    ended: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "x"}
    assert project.send("post-tool-use", tool_response={}, **ended, **where).stopped
    assert project.send("post-tool-batch", **where).stopped
    prompt = project.send("user-prompt-submit", prompt="go on", **where)
    assert (prompt.fields["decision"], command in prompt.fields["reason"]) == ("block", True)
    admin_actions.extend_budget(project.store(), "session:abc", 5_000, "ok", datetime.now(UTC))
    assert project.send("user-prompt-submit", prompt="go on", **where).reason == ""
    assert project.send("post-tool-batch", **where).stopped == ""


def test_the_second_refusal_in_a_row_and_a_wait_for_a_person_end_the_loop(project: HookedProject) -> None:
    project.environ |= {
        "LOPEN_CIRCUIT__SEQUENTIAL_TOOL__THRESHOLD": "2",
        "LOPEN_CIRCUIT__SEQUENTIAL_TOOL__COOLDOWN_BASE": "600",
    }
    read = [project.before("Read", {"file_path": name}) for name in "abcd"]
    assert [each.code for each in read] == [0, 0, 2, 2]
    assert [bool(each.stopped) for each in read] == [False, False, False, True]
    first = project.send("post-tool-batch")  # both stood in one message: the model has not seen the first yet
    assert first.stopped == ""
    project.before("Read", {"file_path": "e"})
    assert "sequential" not in project.send("post-tool-batch").stopped
    again = HookedProject(project.root)
    for i in range(5):
        refused = again.before("Read", {"file_path": f"{'./' * i}a"}, session="other")
    assert refused.stopped.endswith("lopen circuit ack")
    assert again.send("post-tool-batch", session="other").stopped == refused.stopped
    assert again.send("post-tool-batch", session="other").stopped == ""
    assert "lopen circuit ack" in again.send("user-prompt-submit", session="other", prompt="on").reason


def test_a_failure_is_noticed_when_it_happens(project: HookedProject) -> None:
    for i in range(4):
        project.bash(f"make step{i}")
        failed = project.send(
            "post-tool-use-failure",
            tool_name="Bash",
            tool_input={"command": f"make step{i}"},
            tool_use_id=f"call{project.calls}",
            error="Exit code 2",
        )
    assert "Bash failed 4 times within 5 turns" in failed.told
    assert project.circuit().rule == "tool_failure"
    interrupted = HookedProject(project.root)
    for i in range(5):
        interrupted.bash(f"make step{i}", session="calm")
        interrupted.send(
            "post-tool-use-failure",
            session="calm",
            tool_name="Bash",
            tool_input={"command": f"make step{i}"},
            tool_use_id=f"call{interrupted.calls}",
            error="",
            is_interrupt=True,
        )
    assert interrupted.circuit("calm").state == "closed"


def test_the_start_the_warning_and_wrong_settings_are_told_once(project: HookedProject) -> None:
    project.environ["TOKEN_BUDGET_SESSION_DEFAULT"] = "100000"
    project.environ["TOKEN_BUDGET_TTL"] = "0"
    start = project.send("session-start", source="startup")
    assert "lopen guards this session: 100,000 tokens left (0% used), circuits OK" in start.told
    assert "Session budget: 0 / 100,000 tokens (0%)" in start.context
    assert "TOKEN_BUDGET_TTL" in start.told
    project.says(message("m1", 85_000))
    told = [project.bash(f"echo {i}", transcript_path=str(project.transcript)).told for i in range(2)]
    assert ["85%" in each for each in told] == [True, False]
    assert "TOKEN_BUDGET_TTL" not in "".join(told)


def test_a_damaged_store_is_set_aside_and_said_once(project: HookedProject) -> None:
    project.bash("ls")
    for file in (project.root / ".lopen").glob("state.db*"):
        file.unlink()
    (project.root / ".lopen" / "state.db").write_bytes(b"no database" * 1_000)
    with ThreadPoolExecutor(4) as pool:  # all find it damaged, and one sets it aside
        told = list(pool.map(lambda i: project.start("Bash", {"command": f"ls {i}"}).told, range(4)))
    assert sum("counting begins anew" in each for each in told) == 1
    assert len(list((project.root / ".lopen" / "corrupted").iterdir())) == 1
    assert project.circuit().calls.iteration_count == 4
