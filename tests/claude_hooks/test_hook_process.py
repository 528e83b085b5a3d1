"""The hooks as processes: tokens, warnings and blocks of a budget, what a start and a prompt are told."""

from __future__ import annotations

import json

import pytest

from tests.claude_hooks.process import HookedProject, message


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


def test_the_start_of_a_session_cleans_old_state(project: HookedProject) -> None:
    log = project.root / ".lopen" / "logs" / "lopen.jsonl"
    log.parent.mkdir()
    log.write_text("{}\n" * 1_001)
    assert project.send("session-start", source="startup").code == 0
    assert not log.exists()
    assert len(list(log.parent.glob("lopen.*.jsonl.gz"))) == 1
