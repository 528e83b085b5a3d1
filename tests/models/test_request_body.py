"""What is sent: order, cache marks, and nothing that the API refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.models.messages import SystemBlock, ToolSpec
from lopen.models.request_body import body_of
from tests.messages_api import refusal
from tests.models.conftest import request


def said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{number}", "name": "write_file", "input": {}}


def result(number: int, content: Any = "{}") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}


CONVERSATION = [
    said("user", words("go")),
    said("assistant", call(1)),
    said("user", result(1)),
    said("assistant", call(2)),
    said("user", result(2)),
]


def marks(body: dict[str, Any]) -> list[str]:
    """Where the cache marks are: "system.0", "message.4.0"."""
    found = [f"system.{i}" for i, block in enumerate(body.get("system", [])) if "cache_control" in block]
    for at, message in enumerate(body["messages"]):
        found += [f"message.{at}.{i}" for i, b in enumerate(message["content"]) if "cache_control" in b]
    return found


def test_system_marks_come_first_and_the_conversation_gets_two_of_the_rest() -> None:
    system = [SystemBlock("role", cached=True), SystemBlock("facts", cached=True), SystemBlock("volatile")]
    body = body_of(request(system=system, messages=CONVERSATION))
    assert marks(body) == ["system.0", "system.1", "message.2.0", "message.4.0"]


@pytest.mark.parametrize(("cached", "conversation"), [(0, 2), (2, 2), (3, 1), (4, 0), (6, 0)])
def test_there_are_never_more_than_four_marks(cached: int, conversation: int) -> None:
    body = body_of(request(system=[SystemBlock("x", cached=True)] * cached, messages=CONVERSATION))
    assert len(marks(body)) == min(cached, 4) + conversation
    assert refusal(body) is None


def test_the_oracles_single_question_is_not_written_to_the_cache() -> None:
    assert marks(body_of(request(purpose="oracle"))) == []


def test_a_judgement_that_reads_is_cached_as_any_conversation_is() -> None:
    assert marks(body_of(request(purpose="oracle", messages=CONVERSATION))) != []


def test_thinking_at_the_end_gets_no_mark() -> None:
    paused = [*CONVERSATION, said("assistant", {"type": "thinking", "thinking": "hm", "signature": "s"})]
    body = body_of(request(messages=paused))
    assert marks(body) == ["message.4.0"]
    assert refusal(body) is None


def test_blank_text_and_messages_of_nothing_else_are_left_out() -> None:
    messages = [
        said("user", words("go"), words(" \n")),
        said("assistant", words("")),
        said("assistant", call(1), words("")),
        said("user", result(1, [words(""), words("ok")])),
    ]
    body = body_of(request(system=[SystemBlock("")], messages=messages))
    assert "system" not in body
    assert [len(message["content"]) for message in body["messages"]] == [1, 1, 1]
    assert body["messages"][2]["content"][0]["content"] == [words("ok")]
    assert refusal(body) is None


def test_tools_keep_their_order_and_one_can_be_forced() -> None:
    offered = [ToolSpec(name, "", {"type": "object"}) for name in ("zeta", "alpha")]
    body = body_of(request(tools=offered, tool_choice="alpha"))
    assert [tool["name"] for tool in body["tools"]] == ["zeta", "alpha"]
    assert body["tool_choice"] == {"type": "tool", "name": "alpha"}
    assert not any("cache_control" in tool for tool in body["tools"])


@given(turns=st.integers(0, 8), cached=st.integers(0, 6), blanks=st.booleans())
def test_the_stable_part_is_the_same_from_turn_to_turn(turns: int, cached: int, blanks: bool) -> None:
    system = [SystemBlock("" if blanks and i == 1 else "x", cached=i < cached) for i in range(7)]
    messages = [said("user", words("go"))]
    bodies = []
    for turn in range(turns + 1):
        bodies.append(body_of(request(system=system, messages=messages)))
        messages = [*messages, said("assistant", call(turn)), said("user", result(turn))]
    assert all(body["system"] == bodies[0]["system"] for body in bodies)
    assert all(body["tools"] == bodies[0]["tools"] for body in bodies)
    assert all(refusal(body) is None for body in bodies)
