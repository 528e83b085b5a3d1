"""The hooks as processes: tokens, warnings and blocks of a budget, what a start and a prompt are told."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from lopen.limits import admin_actions
from tests.claude_hooks.process import Answered, HookedProject, message
from tests.project import Project


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
    assert again.out == ""
    last = spend(17_999)
    assert last.code == 2
    assert (
        "Token budget exhausted (100,000 / 100,000 tokens used). HITL review required to continue."
        in last.err
    )
    assert "lopen budget extend --tokens 50000" in last.err
    assert project.before("Read", {"file_path": "a"}).code == 2
    admin_actions.extend_budget(project.store(), "session:abc", 50_000, "nearly done", datetime.now(UTC))
    assert project.before("Read", {"file_path": "a"}).code == 0


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
    assert project.budget().unpriced_tokens == 0
    assert project.budget().cost_usd == pytest.approx(2 * (100 * 4 + 1_000 * 0.2) / 1e6 + 550 * 20 / 1e6)


def test_rubbish_other_sessions_and_signs_that_elsewhere_end_a_line_are_read_over(
    project: HookedProject,
) -> None:
    own = message("m3", 800, text="one\u2028two\u0085three")
    lines = ["rubbish", "[1]", "null", json.dumps(message("m1", 10, session="other"))]
    lines.append(json.dumps(own, ensure_ascii=False))
    project.transcript.write_text("\n".join(lines) + "\n", "utf-8")
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
        "Circuit breaker: closed (1/50 iterations)",
    ]


def test_wrong_settings_are_said_and_logged_once_a_session(project: HookedProject) -> None:
    (project.root / ".lopen" / "config.toml").write_text("[budget]\nsession_tokens = 1000\n[circuit\n")
    project.environ["TOKEN_BUDGET_PAUSE_THRESHOLD"] = "0"
    said = [project.before("Read", {"file_path": name}) for name in "ab"]
    assert [answered.code for answered in said] == [0, 0]
    assert "TOKEN_BUDGET_PAUSE_THRESHOLD" in said[0].told
    assert "config.toml" in said[0].told
    assert said[1].err == ""
    log = (project.root / ".lopen" / "logs" / "hooks.jsonl").read_text("utf-8").splitlines()
    assert len(log) == 2


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


def test_status_shows_the_newest_session_of_claude_code(project: HookedProject) -> None:
    project.environ["TOKEN_BUDGET_SESSION_DEFAULT"] = "10000"
    response = {"usage": {"input_tokens": 2_500}}
    for session in ("old", "abc"):
        project.send("post-tool-use", session, tool_name="T", tool_input={}, tool_response=response)

    shown = Project(project.root).lopen("status", HOME=str(project.home)).out

    assert "Claude Code, newest session:\nsession:abc" in shown
    assert "2,500/10,000 (25%) tokens" in shown
    assert "session:abc: all limits OK" in shown
    assert "session:old" not in shown
