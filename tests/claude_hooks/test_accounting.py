"""Everything that is billed is counted once: main thread, sub-agents, forks, text-only turns; cost by request."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.claude_hooks.process import HookedProject


def line(request: str, tokens: int, session: str = "abc", model: str = "claude-opus-4-8", **more: Any) -> str:
    """A transcript line in the client's present shape."""
    usage = {"input_tokens": tokens, "output_tokens": 100, "cache_read_input_tokens": 0}
    body = {"id": f"msg_{request}", "role": "assistant", "model": model, "usage": usage, "content": []}
    entry = {"type": "assistant", "sessionId": session, "requestId": f"req_{request}", "isSidechain": False}
    return json.dumps(entry | {"message": body} | more) + "\n"


def written(project: HookedProject, *lines: str, agent: str = "") -> dict[str, str]:
    path = project.transcript
    if agent:
        path = Path(str(path).removesuffix(".jsonl")) / "subagents" / f"agent-{agent}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(lines)
    return {"transcript_path": str(project.transcript)}


def test_text_only_turns_are_counted_when_they_stop_and_at_the_end(project: HookedProject) -> None:
    where = written(project, line("1", 14_000))
    project.send("stop", last_assistant_message="done", **where)
    assert project.budget().tokens_used == 14_100
    written(project, line("1", 14_000), line("2", 15_000))
    project.send("session-end", reason="other", **where)
    assert project.budget().tokens_used == 29_200
    assert project.budget().requests_used == 2


def test_a_last_line_without_its_end_is_counted_once_when_it_is_whole(project: HookedProject) -> None:
    first, half = line("1", 5_000), line("2", 6_000)
    where = written(project, first, half[:-40])
    project.bash("ls", **where)
    assert project.budget().tokens_used == 5_100
    written(project, half[-40:])
    project.send("session-end", reason="other", **where)
    assert (project.budget().tokens_used, project.budget().requests_used) == (5_100 + 6_100, 2)


def test_what_a_large_paste_hid_is_counted_at_the_end(project: HookedProject) -> None:
    pasted = json.dumps({"type": "user", "sessionId": "abc", "message": {"content": "x" * 3_000_000}}) + "\n"
    where = written(project, pasted, pasted, "{no JSON\n", line("1", 7_000))
    project.send("subagent-stop", agent_id="late", **where)
    assert project.budget().tokens_used == 0
    written(project, line("2", 500, isSidechain=True, agentId="late"), agent="late")  # after its end
    project.send("session-end", reason="other", **where)
    assert project.budget().tokens_used == 7_100 + 600


def test_sub_agents_are_counted_from_their_own_transcripts_and_not_from_the_answer(
    project: HookedProject,
) -> None:
    where = written(project, line("1", 3_000))
    for number in range(10):
        side: dict[str, Any] = {"isSidechain": True, "agentId": f"a{number}"}
        lines = [line(f"{number}-{i}", 2_000, **side) for i in range(5)]
        written(project, *lines, agent=f"a{number}")
    usage = {"input_tokens": 2_000, "output_tokens": 100}
    response = {"status": "completed", "agentId": "a1", "usage": usage}
    project.send("post-tool-use", tool_name="Agent", tool_input={}, tool_response=response, **where)
    assert project.budget().tokens_used == 3_100 + 50 * 2_100
    project.send("subagent-stop", agent_id="a1", **where)
    assert project.budget().tokens_used == 3_100 + 50 * 2_100
    priced = 51 * 100 * 25e-6 + (3_000 + 50 * 2_000) * 5e-6
    assert project.budget().cost_usd == pytest.approx(priced)


def test_a_fork_does_not_count_its_parent_again(project: HookedProject) -> None:
    project.send("session-end", **written(project, line("1", 5_000), line("2", 6_000)))
    project.transcript = project.transcript.with_name("fork.jsonl")
    where = written(project, *(line(str(i), 4_000 + 1_000 * i, "fork") for i in (1, 2, 3)))
    project.send("stop", session="fork", **where)
    assert project.budget("fork").tokens_used == 7_100
    assert project.budget().tokens_used == 11_200


def test_a_long_session_of_short_requests_has_the_price_of_short_requests(project: HookedProject) -> None:
    model = "claude-sonnet-4-5"
    where = written(project, *(line(str(i), 100_000, model=model) for i in range(5)))
    project.send("stop", **where)
    assert project.budget().cost_usd == pytest.approx(5 * (100_000 * 3e-6 + 100 * 15e-6))
    written(project, line("long", 300_000, model=model))
    project.send("stop", **where)
    long = 300_000 * 6e-6 + 100 * 22.5e-6
    assert project.budget().cost_usd == pytest.approx(5 * (100_000 * 3e-6 + 100 * 15e-6) + long)


def test_the_cost_of_sub_agents_holds_further_ones_back(project: HookedProject) -> None:
    where = written(project, line("1", 900_000, isSidechain=True, agentId="a"), agent="a")
    assert "have cost $4.50" in project.bash("ls", **where).told
    written(project, line("2", 200_000, isSidechain=True, agentId="a"), agent="a")
    refused = project.before("Agent", {"prompt": "more"}, **where)
    assert "have cost $5.00 or more" in refused.reason
    assert refused.stopped
    assert project.bash("ls -l", **where).code == 0  # it is about agents
    assert project.bash("python oracle.py", **where).code == 2


def test_counters_that_nobody_changed_for_long_start_anew(project: HookedProject) -> None:
    project.environ["TOKEN_BUDGET_TTL"] = "1"
    usage: dict[str, Any] = {
        "tool_response": {"usage": {"input_tokens": 900}},
        "tool_name": "T",
        "tool_input": {},
    }
    project.send("post-tool-use", **usage)
    store = project.store()
    state = project.budget()
    old = replace(state, last_updated=state.started_at.replace(2020))
    store.atomically(lambda rows: rows.put_budget(old))
    project.send("post-tool-use", **usage)
    assert project.budget().tokens_used == 900
