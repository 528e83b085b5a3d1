"""The hooks as processes: tokens, warnings, blocking, and allowing whatever fails in themselves."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lopen.limits import orders
from lopen.limits.redis_store import RedisStore
from tests.hooks.process import COMMAND, Answered, HookedProject, message
from tests.limits.redis_server import RedisServer


def test_usage_in_the_event_is_counted_in_either_shape(project: HookedProject) -> None:
    usage = {"input_tokens": 5_000, "output_tokens": 2_000, "cache_read_input_tokens": 10_000}
    present = project.send("post-tool-use", tool_name="Task", tool_input={}, tool_response={"usage": usage})
    assert (present.code, present.out) == (0, "")
    old = {
        "tool": "Task",
        "arguments": {"agent": "backend", "prompt": "..."},
        "response": {"content": "...", "usage": {"input_tokens": 5_000, "output_tokens": 2_000}},
        "sessionId": "session-abc123",
    }
    assert project.raw("post-tool-use", json.dumps(old).encode()).code == 0
    assert project.budget().tokens_used == 8_000
    assert project.budget("session-abc123").tokens_used == 7_000
    assert project.budget().agent == "claude-code"


def test_a_warning_is_given_once_and_an_exhausted_budget_blocks_until_extended(
    project: HookedProject,
) -> None:
    project.environ["TOKEN_BUDGET_SESSION_DEFAULT"] = "100000"

    def spend(tokens: int) -> Answered:
        response = {"usage": {"input_tokens": tokens}}
        return project.send("post-tool-use", tool_name="T", tool_input={}, tool_response=response)

    first = spend(82_000)
    assert first.context == (
        "## Budget Warning\nToken usage at 82% (82,000 / 100,000). Consider wrapping up current task."
    )
    assert json.loads(first.out)["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    again = spend(1)
    assert (again.code, again.out) == (0, "")
    last = spend(17_999)
    assert last.code == 2
    assert (
        "Token budget exhausted (100,000 / 100,000 tokens used). HITL review required to continue."
        in last.err
    )
    assert "lopen budget extend session:abc" in last.err
    assert project.before("Read", {"file_path": "a"}).code == 2
    orders.extend_budget(project.store(), "session:abc", 50_000, "nearly done", datetime.now(UTC))
    assert project.before("Read", {"file_path": "a"}).code == 0


def test_the_old_shape_gets_its_answer_at_the_top_level(project: HookedProject) -> None:
    project.environ["TOKEN_BUDGET_SESSION_DEFAULT"] = "1000"
    event = {"tool": "T", "arguments": {}, "sessionId": "s", "response": {"usage": {"input_tokens": 850}}}
    warned = project.raw("post-tool-use", json.dumps(event).encode())
    assert json.loads(warned.out)["additionalContext"].startswith("## Budget Warning\nToken usage at 85%")
    blocked = project.raw("post-tool-use", json.dumps(event).encode())
    assert blocked.code == 2
    assert json.loads(blocked.out)["reason"].startswith("Token budget exhausted (1,700 / 1,000 tokens used)")


def test_tokens_come_from_the_new_lines_of_the_transcript_each_message_once(project: HookedProject) -> None:
    project.says(message("m1", 10), message("m1", 500), {"type": "user", "sessionId": "abc"})
    project.before("Read", {"file_path": "a"}, transcript_path=str(project.transcript))
    assert project.budget().tokens_used == 100 + 500 + 100
    project.says(message("m1", 500), message("m2", 50))
    for _ in range(2):
        project.before("Read", {"file_path": "b"}, transcript_path=str(project.transcript))
    assert project.budget().tokens_used == 700 + 250
    spends = project.store().spend("session:abc")
    assert [(s.model, s.requests) for s in spends] == [("claude-opus-5-5", 2)]
    assert project.budget().unpriced_tokens == 950


def test_lines_of_other_sessions_sidechains_and_halves_are_not_counted(project: HookedProject) -> None:
    project.says(message("m1", 10, session="other"), message("m2", 10, isSidechain=True))
    half = json.dumps(message("m3", 800))
    with project.transcript.open("a") as file:
        file.write("rubbish\n[1]\nnull\n" + half[:50])
    where = str(project.transcript)
    project.before("Read", {"file_path": "a"}, transcript_path=where)
    assert project.budget().tokens_used == 0
    with project.transcript.open("a") as file:
        file.write(half[50:] + "\n")
    project.before("Read", {"file_path": "b"}, transcript_path=where)
    assert project.budget().tokens_used == 1_000


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\u0085"])
def test_a_message_with_a_sign_that_elsewhere_ends_a_line_is_counted(
    project: HookedProject, sign: str
) -> None:
    line = json.dumps(message("m1", 800, text=f"one{sign}two"), ensure_ascii=False)
    project.transcript.write_text(line + "\n", "utf-8")
    project.before("Read", {"file_path": "a"}, transcript_path=str(project.transcript))
    assert project.budget().tokens_used == 1_000


def test_a_transcript_that_is_none_or_shrank_costs_nothing(project: HookedProject) -> None:
    for where in ("/dev/zero", "/nonexistent", str(project.root), "a\0b"):
        assert project.before("Read", {"file_path": where}, transcript_path=where).code == 0
    project.says(message("m1", 300), message("m2", 300))
    project.before("Read", {"file_path": "a"}, transcript_path=str(project.transcript))
    project.transcript.write_text(json.dumps(message("m1", 300)) + "\n")
    project.before("Read", {"file_path": "b"}, transcript_path=str(project.transcript))
    assert project.budget().tokens_used == 1_000


def test_the_prompt_event_gives_the_budget_status(project: HookedProject) -> None:
    project.says(message("m1", 44_800))
    project.environ["TOKEN_BUDGET_SESSION_DEFAULT"] = "100000"
    project.before("Read", {"file_path": "a"}, transcript_path=str(project.transcript))
    answered = project.send("user-prompt-submit", prompt="go on", transcript_path=str(project.transcript))
    assert answered.code == 0
    assert json.loads(answered.out)["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert answered.context.splitlines() == [
        "## Budget Status",
        "Session budget: 45,000 / 100,000 tokens (45%)",
        "Circuit breaker: closed (1 iterations)",
    ]


def test_wrong_settings_are_said_at_the_start_and_logged_once(project: HookedProject) -> None:
    (project.root / ".lopen" / "config.toml").write_text("[budget]\nsession_tokens = 1000\n[circuit\n")
    project.environ["TOKEN_BUDGET_PAUSE_THRESHOLD"] = "0"
    said = [project.before("Read", {"file_path": name}) for name in "ab"]
    assert [answered.code for answered in said] == [0, 0]
    assert "TOKEN_BUDGET_PAUSE_THRESHOLD is not a number above 0 and at most 1" in said[0].err
    assert "config.toml is not valid TOML (line 3, column 9): nothing in it holds" in said[0].err
    assert said[1].err == ""
    log = (project.root / ".lopen" / "logs" / "hooks.jsonl").read_text("utf-8").splitlines()
    assert len(log) == 2
    start = project.send("session-start", source="startup")
    assert "TOKEN_BUDGET_PAUSE_THRESHOLD is not" in start.context
    assert "session_tokens" not in start.context


def test_session_start_says_what_guards_it(project: HookedProject) -> None:
    answered = project.send("session-start", source="startup")
    assert answered.code == 0
    assert "Session budget: 0 / 500,000 tokens (0%)" in answered.context


def test_the_fifth_identical_call_is_blocked_until_a_person_acknowledges(project: HookedProject) -> None:
    codes = [project.before("Read", {"file_path": f"{'./' * i}a.py"}).code for i in range(5)]
    assert codes == [0, 0, 0, 0, 2]
    blocked = project.before("Edit", {"file_path": "b.py"})
    assert blocked.code == 2
    for said in (
        "Circuit breaker tripped: Read was called 5 times in a row",
        "lopen circuit ack session:abc",
    ):
        assert said in blocked.err
    orders.acknowledge_circuit(project.store(), "session:abc", datetime.now(UTC))
    assert project.before("Edit", {"file_path": "b.py"}).code == 0
    assert project.before("Edit", {"file_path": "c.py"}).code == 2
    probe: dict[str, Any] = {
        "tool_name": "Edit",
        "tool_input": {"file_path": "b.py"},
        "tool_response": {"success": True},
    }
    assert project.send("post-tool-use", **probe).code == 0
    assert project.circuit().state == "closed"


def test_the_same_command_worded_anew_is_the_same_call(project: HookedProject) -> None:
    calls = [{"command": "make", "description": f"Attempt {i}", "timeout": 1_000 * i} for i in range(5)]
    assert [project.before("Bash", call).code for call in calls] == [0, 0, 0, 0, 2]
    assert project.circuit().rule == "duplicate_call"


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


def test_a_failing_response_counts_as_a_failure(project: HookedProject) -> None:
    for i in range(4):
        project.bash(f"make step{i}")
        last = project.send(
            "post-tool-use",
            tool_name="Bash",
            tool_input={"command": f"make step{i}"},
            tool_response={"is_error": True},
        )
    assert last.code == 2
    assert "Bash failed 4 times within 5 turns. Cooldown: 5s" in last.err


def test_eleven_oracle_calls_in_a_minute_are_held_back(project: HookedProject) -> None:
    project.environ["LOPEN_CIRCUIT__SEQUENTIAL_TOOL__ENABLED"] = "false"
    codes = [project.bash(f"python scripts/oracle.py --question {i}").code for i in range(11)]
    assert codes == [0] * 10 + [2]
    assert project.circuit().rule == "external_api"


def test_naming_the_script_without_running_it_is_no_external_call(project: HookedProject) -> None:
    project.bash("git commit -m 'mend oracle.py'")
    assert project.circuit().external == ()


def test_a_hook_that_calls_itself_six_times_is_stopped(project: HookedProject) -> None:
    codes = [project.bash(f"echo {i} > /tmp/e; lopen hook pre-tool-use < /tmp/e{i}").code for i in range(6)]
    assert codes == [0] * 5 + [2]
    assert project.circuit().rule == "hook_recursion"


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


def test_agents_are_held_ten_seconds_apart(project: HookedProject) -> None:
    assert project.before("Task", {"prompt": "one"}).code == 0
    held = project.before("Task", {"prompt": "two"})
    assert held.code == 2
    assert "Resource limit reached: the last sub-agent was started a moment ago. Cooldown:" in held.err


BAD = {
    "nothing": b"",
    "no JSON": b"{'session_id': 1",
    "not UTF-8": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "no session": b'{"tool_name": "Read"}',
    "no tool": b'{"session_id": "abc"}',
    "a session that is a path": b'{"session_id": "../../etc/passwd", "tool_name": "Read"}',
    "wrong kinds": b'{"session_id": 5, "tool_name": ["x"], "tool_input": 3}',
    "deep nesting": b"[" * 100_000,
}


@pytest.mark.parametrize("what", BAD)
def test_a_malformed_event_allows_the_call_and_is_logged(project: HookedProject, what: str) -> None:
    for event in ("pre-tool-use", "post-tool-use"):
        answered = project.raw(event, BAD[what])
        assert (answered.code, answered.out) == (0, "")
        assert "the call is allowed" in answered.err
    log = (project.root / ".lopen" / "logs" / "hooks.jsonl").read_text().splitlines()
    assert [json.loads(line)["level"] for line in log] == ["warning"] * 2


def test_malformed_usage_is_left_out(project: HookedProject) -> None:
    usage: object
    for usage in (
        {"input_tokens": "many"},
        {"input_tokens": -5},
        [],
        {"output_tokens": 1e30},
        {"input_tokens": True},
    ):
        answered = project.send(
            "post-tool-use", tool_name="T", tool_input=None, tool_response={"usage": usage}
        )
        assert answered.code == 0
    assert project.budget().tokens_used == 0


def test_an_event_of_ten_megabytes_is_answered(project: HookedProject) -> None:
    content = "x = 1\n" * 1_750_000
    assert project.before("Write", {"file_path": "a.py", "content": content}).code == 0
    assert project.circuit().iteration_count == 1
    assert project.bash(f"cat <<'EOF' > a.txt\n{content}EOF\n").code == 0


def test_an_event_that_names_a_session_of_lopens_own_changes_nothing(project: HookedProject) -> None:
    from lopen.limits.budget import BudgetSpec, Charge

    spec = BudgetSpec("session:auth-20260101-1", "session", 1_000, agent="builder")
    project.store().record([spec], Charge(10), datetime.now(UTC))
    answered = project.send(
        "post-tool-use",
        session="auth-20260101-1",
        tool_name="T",
        tool_input={},
        tool_response={"usage": {"input_tokens": 900}},
    )
    assert answered.code == 0
    assert "a session of lopen's own" in answered.err
    assert project.budget("auth-20260101-1").tokens_used == 10


def test_a_store_of_a_newer_version_allows_and_is_left_alone(project: HookedProject) -> None:
    project.before("Read", {"file_path": "a"})
    connection = sqlite3.connect(project.root / ".lopen" / "state.db")
    connection.execute("PRAGMA user_version=9999")
    connection.close()
    answered = project.before("Read", {"file_path": "a"})
    assert answered.code == 0
    assert "newer lopen" in answered.err


def test_a_store_that_is_locked_damaged_or_missing_allows(project: HookedProject) -> None:
    project.environ["LOPEN_HOOKS__TIMEOUT_S"] = "0.4"
    project.before("Read", {"file_path": "a"})
    database = project.root / ".lopen" / "state.db"
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    locked = project.before("Read", {"file_path": "a"})
    holder.execute("ROLLBACK")
    holder.close()
    assert (locked.code, "locked" in locked.err) == (0, True)
    for file in (project.root / ".lopen").glob("state.db*"):
        file.unlink()
    database.write_bytes(b"no database" * 1_000)
    assert project.before("Read", {"file_path": "a"}).code == 0
    database.unlink()
    (project.root / ".lopen" / "logs" / "hooks.jsonl").unlink()
    (project.root / ".lopen" / "logs").rmdir()
    (project.root / ".lopen").rmdir()
    missing = project.before("Read", {"file_path": "a"})
    assert (missing.code, "no .lopen folder" in missing.err) == (0, True)


def test_standard_input_that_never_ends_is_given_up(project: HookedProject) -> None:
    project.environ["LOPEN_HOOKS__TIMEOUT_S"] = "0.3"
    with subprocess.Popen(
        [*COMMAND, "pre-tool-use"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project.root,
        env=project.env(),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"session_id"')
        process.stdin.flush()
        assert process.wait(timeout=20) == 0
        assert process.stderr is not None
        assert b"took too long" in process.stderr.read()


def test_an_unknown_event_is_wrong_usage(project: HookedProject) -> None:
    answered = project.raw("pre-toll-use", b"{}")
    assert answered.code == 2
    assert "usage: lopen hook" in answered.err


def test_budgets_and_circuits_that_are_off_block_nothing(project: HookedProject) -> None:
    project.environ |= {"TOKEN_BUDGET_ENABLED": "false", "CIRCUIT_BREAKER_ENABLED": "false"}
    usage = {"usage": {"input_tokens": 900_000_000}}
    assert project.send("post-tool-use", tool_name="T", tool_input={}, tool_response=usage).code == 0
    assert [project.before("Read", {"file_path": "a"}).code for _ in range(7)] == [0] * 7


def test_protected_edits_and_persons_commands_are_blocked_without_any_store(project: HookedProject) -> None:
    (project.root / ".lopen").rmdir()
    blocked = project.before("Write", {"file_path": ".claude/settings.json", "content": "{}"})
    assert (blocked.code, "protected" in blocked.err) == (2, True)
    person = project.bash("cd /tmp && lopen approve auth")
    assert (person.code, "a person's command" in person.err) == (2, True)


def test_parallel_calls_after_an_acknowledgement_get_one_probe_between_them(project: HookedProject) -> None:
    for i in range(5):
        project.before("Read", {"file_path": f"{'./' * i}a.py"})
    orders.acknowledge_circuit(project.store(), "session:abc", datetime.now(UTC))
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda i: project.before("Edit", {"file_path": f"b{i}"}).code, range(4)))
    assert sorted(codes) == [0, 2, 2, 2]


def acknowledged_agent(project: HookedProject) -> None:
    """The circuit tripped, a person acknowledged, and a sub-agent is the probe."""
    for i in range(5):
        project.before("Read", {"file_path": f"{'./' * i}a.py"})
    orders.acknowledge_circuit(project.store(), "session:abc", datetime.now(UTC))
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


def test_a_call_beside_the_probe_is_told_what_it_waits_for(project: HookedProject) -> None:
    for i in range(5):
        project.before("Read", {"file_path": f"{'./' * i}a.py"})
    orders.acknowledge_circuit(project.store(), "session:abc", datetime.now(UTC))
    project.before("Edit", {"file_path": "b.py"})
    beside = project.before("Edit", {"file_path": "c.py"})
    assert beside.code == 2
    assert "one call (Edit) is being tried" in beside.err
    assert "Cooldown" not in beside.err


def test_a_warning_is_given_with_the_reason_where_the_same_event_blocks(project: HookedProject) -> None:
    project.environ["TOKEN_BUDGET_SESSION_DEFAULT"] = "1000"
    where = {"transcript_path": str(project.transcript)}
    for i in range(4):
        project.before("Read", {"file_path": f"{'./' * i}a.py"}, **where)
    project.says(message("m1", 700))
    blocked = project.before("Read", {"file_path": "a.py"}, **where)
    assert blocked.code == 2
    assert "Read was called 5 times in a row" in blocked.err
    assert "## Budget Warning\nToken usage at 90%" in blocked.err


def test_the_hooks_count_in_redis_where_the_person_says_so(project: HookedProject, tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    project.environ["LOPEN_BUDGET__STORE"] = server.url
    usage = {"usage": {"input_tokens": 5_000}}
    try:
        answered = project.send("post-tool-use", tool_name="T", tool_input={}, tool_response=usage)
        [state] = RedisStore(server.url).budgets()
    finally:
        server.stop()
    assert (answered.code, state.budget_id, state.tokens_used) == (0, "session:abc", 5_000)
    gone = project.before("Read", {"file_path": "a"})
    assert (gone.code, "the call is allowed" in gone.err) == (0, True)
    assert not (project.root / ".lopen" / "state.db").exists()


def test_usage_that_a_gone_redis_missed_is_counted_with_the_next_prompt(
    project: HookedProject, tmp_path: Path
) -> None:
    server = RedisServer(tmp_path)
    project.environ["LOPEN_BUDGET__STORE"] = server.url
    usage = {"usage": {"input_tokens": 5_000}}
    try:
        server.stop()
        for _ in range(2):
            missed = project.send("post-tool-use", tool_name="T", tool_input={}, tool_response=usage)
            assert (missed.code, "the call is allowed" in missed.err) == (0, True)
        server.start()
        assert "10,000 / 500,000" in project.send("user-prompt-submit", prompt="on").context
        assert "10,000 / 500,000" in project.send("user-prompt-submit", prompt="on").context
    finally:
        server.stop()
