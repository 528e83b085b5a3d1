"""What the Messages API refuses, as a table: a body that is taken, and one change each that is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages_api import refusal

MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str = "hello", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(name: str = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "read_file", "input": {}, **more}


def result(name: str = "t1", content: Any = "{}") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def tool(name: str = "read_file", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "", "input_schema": {"type": "object"}, **more}


def body(*messages: Any, **changes: Any) -> dict[str, Any]:
    whole = {"model": "m", "max_tokens": 1, "messages": list(messages) or [user(text())], "tools": [tool()]}
    return whole | changes


TAKEN = {
    "one question": body(),
    "plain strings": body({"role": "user", "content": "hello"}, system="Be brief."),
    "a call and its result": body(user(text()), assistant(text(), call()), user(result(), text())),
    "two calls, answered in any order": body(
        user(text()), assistant(call("a"), call("b")), user(result("b"), result("a"))
    ),
    "results in two messages": body(
        user(text()), assistant(call("a"), call("b")), user(result("a")), user(result("b"))
    ),
    "an empty result": body(user(text()), assistant(call()), user(result(content=""))),
    "four marks": body(user(text(**MARK)), system=[text(**MARK)] * 3),
    "a forced tool": body(tool_choice={"type": "tool", "name": "read_file"}),
    "thinking with its signature": body(
        user(text()), assistant({"type": "thinking", "thinking": "", "signature": "s"}, text()), user(text())
    ),
    "a paused turn at the end": body(user(text()), assistant(text("so far"))),
}

REFUSED = {
    "not valid JSON": ("nonsense", "not valid JSON"),
    "no max_tokens": ({k: v for k, v in body().items() if k != "max_tokens"}, "max_tokens: Field required"),
    "max_tokens 0": (body(max_tokens=0), "max_tokens: Input should be greater"),
    "max_tokens as text": (body(max_tokens="1"), "max_tokens: Input should be a valid integer"),
    "no model": (body(model=""), "model:"),
    "no messages": (body(messages=[]), "at least one message is required"),
    "messages of another kind": (body(messages={}), "messages: Input should be a valid array"),
    "an unknown field": (body(purpose="turn"), "purpose: Extra inputs are not permitted"),
    "a call without its result": (
        body(user(text()), assistant(call()), user(text())),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1.",
    ),
    "a call at the end": (body(user(text()), assistant(call())), "messages.1: `tool_use` ids were found"),
    "one of two calls without its result": (
        body(user(text()), assistant(call("a"), call("b")), user(result("a"))),
        "immediately after: b.",
    ),
    "text before the results": (
        body(user(text()), assistant(call()), user(text(), result())),
        "`tool_use` ids were found without",
    ),
    "a result without its call": (body(user(text(), result())), "unexpected `tool_use_id` found"),
    "a result of an earlier call": (
        body(user(text()), assistant(call()), user(result()), assistant(text()), user(result())),
        "unexpected `tool_use_id` found",
    ),
    "two results of one call": (
        body(user(text()), assistant(call()), user(result(), result())),
        "multiple `tool_result` blocks with id: t1",
    ),
    "the same id twice in one message": (
        body(user(text()), assistant(call(), call()), user(result())),
        "`tool_use` ids must be unique",
    ),
    "the same id twice in the conversation": (
        body(user(text()), assistant(call()), user(result()), assistant(call()), user(result())),
        "`tool_use` ids must be unique",
    ),
    "an input that is no object": (
        body(user(text()), assistant(call(input="{")), user(result())),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "no content": (body(user()), "messages.0: all messages must have non-empty content"),
    "an empty string": (body({"role": "user", "content": ""}), "non-empty"),
    "empty text": (body(user(text(""))), "text content blocks must be non-empty"),
    "blank text": (body(user(text(" \n"))), "must contain non-whitespace text"),
    "empty text in a result": (
        body(user(text()), assistant(call()), user(result(content=[text("")]))),
        "text content blocks must be non-empty",
    ),
    "empty system text": (body(system=[text("")]), "system.0: text content blocks must be non-empty"),
    "the assistant first": (body(assistant(text()), user(text())), 'first message must use the "user" role'),
    "another role": (body({"role": "system", "content": "x"}), "messages.0.role"),
    "no content field": (body({"role": "user"}), "messages.0.content: Field required"),
    "a block without type": (body(user({"text": "x"})), "messages.0.content.0.type: Field required"),
    "thinking without its signature": (
        body(user(text()), assistant({"type": "thinking", "thinking": "x"}), user(text())),
        "thinking.signature: Field required",
    ),
    "a mark on thinking": (
        body(user(text()), assistant({"type": "thinking", "thinking": "", "signature": "s", **MARK}), user(text())),
        "thinking.cache_control: Extra inputs are not permitted",
    ),
    "an ending in blanks": (body(user(text()), assistant(text("so "))), "cannot end with trailing whitespace"),
    "five marks": (body(user(text(**MARK), text(**MARK)), system=[text(**MARK)] * 3), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    "marks on tools count": (body(tools=[tool(**MARK)], system=[text(**MARK)] * 4), "Found 5"),
    "two tools of one name": (body(tools=[tool(), tool()]), "Tool names must be unique"),
    "a tool's name with a blank": (body(tools=[tool("read file")]), "tools.0.custom.name: String should match pattern"),
    "a tool's name too long": (body(tools=[tool("x" * 129)]), "tools.0.custom.name"),
    "a tool without a schema": (body(tools=[{"name": "x"}]), "input_schema"),
    "an unknown forced tool": (body(tool_choice={"type": "tool", "name": "other"}), "Tool 'other' not found in provided tools"),
}  # fmt: skip


@pytest.mark.parametrize("given_", TAKEN.values(), ids=TAKEN.keys())
def test_is_taken(given_: dict[str, Any]) -> None:
    assert refusal(given_) is None


@pytest.mark.parametrize(("given_", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_is_refused(given_: Any, said: str) -> None:
    assert said in (refusal(given_) or "")


@given(answered=st.lists(st.booleans(), min_size=1, max_size=6))
def test_a_conversation_is_taken_exactly_when_every_call_is_answered(answered: list[bool]) -> None:
    calls = assistant(*(call(f"t{i}") for i in range(len(answered))))
    results = [result(f"t{i}") for i, yes in enumerate(answered) if yes]
    taken = refusal(body(user(text()), calls, user(*results, text()))) is None
    assert taken == all(answered)
