"""The JSON body of a request to the Messages API, and its cache marks. Pure.

The stable part (tools, then system) comes first, so that the prompt cache can hold it. The API allows four cache
marks: first on the system blocks, then on the last user messages. So a growing conversation is read from the cache.
The mark before the last one is at the end of the previous request. Without it, a turn of more than twenty blocks
would not find its own prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from lopen.models.messages import Json, Request, Response, SystemBlock, ToolSpec, ToolUse

MAX_MARKS: Final = 4
CONVERSATION_MARKS: Final = 2
MARK: Final[Json] = {"type": "ephemeral"}
UNMARKABLE: Final = frozenset({"thinking", "redacted_thinking"})  # the API does not allow a mark on these


def body_of(request: Request) -> dict[str, Any]:
    """Return the body of `POST /v1/messages` without `stream`, which the SDK adds. The request's own objects do not change."""
    system = _system(request.system)
    messages = _messages(request.messages)
    marked = [*system, *(block for message in messages for block in message["content"])]
    marks_left = MAX_MARKS - sum("cache_control" in block for block in marked)
    if request.purpose != "oracle" or len(messages) > 1:
        # Most judgements are one request, of which only the assignment is ever read again.
        _mark_conversation(messages, min(marks_left, CONVERSATION_MARKS))
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": messages,
    }
    if system:
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.tool_choice is not None:
        body["tool_choice"] = {"type": "tool", "name": request.tool_choice}
    return body


def _system(blocks: Iterable[SystemBlock]) -> list[dict[str, Any]]:
    """Return the blocks that are not blank; of more than four marks the last ones stay (the longest prefixes)."""
    kept = [block for block in blocks if block.text.strip()]
    marked = [index for index, block in enumerate(kept) if block.cached][-MAX_MARKS:]
    return [
        {"type": "text", "text": block.text} | ({"cache_control": MARK} if index in marked else {})
        for index, block in enumerate(kept)
    ]


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def _messages(messages: Sequence[Json]) -> list[dict[str, Any]]:
    """Return the messages without blank texts and empty messages, which the API refuses."""
    shown = ({"role": message["role"], "content": _content(message["content"])} for message in messages)
    return [message for message in shown if message["content"]]


def _content(content: str | Sequence[Json]) -> list[Json]:
    blocks: Sequence[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_without_blanks(block) for block in blocks if not _blank(block)]


def _blank(block: Json) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _without_blanks(block: Json) -> Json:
    """Return a tool result without blank texts; other blocks are unchanged."""
    inner = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(inner, (list, tuple)):
        return block
    if not any(_blank(part) for part in inner):
        return block
    return {**block, "content": [part for part in inner if not _blank(part)]}


def _mark_conversation(messages: list[dict[str, Any]], marks: int) -> None:
    """Mark the last block of the last message and of the user messages before it, `marks` in total."""
    last = len(messages) - 1
    places = [i for i in range(last, -1, -1) if i == last or messages[i]["role"] == "user"]
    for index in places[:marks]:
        content = list(messages[index]["content"])
        if content[-1].get("type") in UNMARKABLE:
            continue
        content[-1] = {**content[-1], "cache_control": MARK}
        messages[index]["content"] = content


MAX_TEXT_CHARS: Final = 100_000  # of one text block that is sent back
_INVALID_IN_NAME: Final = re.compile(
    r"[^a-zA-Z0-9_-]"
)  # characters that the API does not allow in a tool name
_MAX_NAME_CHARS: Final = 128


_IDLE: Final[list[tuple[str, Any]]] = [
    ("default", None),
    ("default", []),
    ("default", ""),
    ("minLength", 1),
    ("maxLength", 4096),
    ("additionalProperties", False),
]


def text_block(text: str, *, cached: bool = False) -> Json:
    """Return a text block of a message; a `cached` one ends a prefix that other requests begin with, too."""
    return {"type": "text", "text": text} | ({"cache_control": MARK} if cached else {})


def sendable(content: Sequence[Json]) -> list[Json]:
    """Return content blocks that the endpoint accepts: without blank or very long texts and invalid tool names."""
    return [_sendable(block) for block in content if not _blank(block)]


def can_stand_last(content: Sequence[Json]) -> bool:
    """Return True if a request may end with this content: it is not empty and has no trailing whitespace."""
    last = str(content[-1].get("text", "")) if content else " "
    return last == last.rstrip()


def cut_call(response: Response) -> ToolUse | None:
    """Return the tool call that `max_tokens` truncated: the response's last block, if it is a call."""
    if response.stop_reason != "max_tokens" or not response.tool_uses:
        return None
    last = response.tool_uses[-1]
    return last if response.content[-1].get("id") == last.id else None


def _sendable(block: Json) -> Json:
    if block.get("type") == "text":
        return _shortened(block)
    if block.get("type") == "tool_use":
        name = _INVALID_IN_NAME.sub("_", str(block["name"]))[:_MAX_NAME_CHARS]
        return block if name == block["name"] else {**block, "name": name}
    return block


def _shortened(block: Json) -> Json:
    text, half = str(block.get("text", "")), MAX_TEXT_CHARS // 2
    left_out = len(text) - 2 * half
    if left_out <= 0:
        return block
    return {**block, "text": f"{text[:half]}\n[{left_out} characters left out by lopen]\n{text[-half:]}"}


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return pydantic's JSON schema of a tool's input without the parts that only cost tokens.

    Titles, patterns, empty defaults and trivial lengths go; a field that may be null may be left out.
    """
    plain: dict[str, Any] = _plain(schema)
    plain.setdefault("properties", {})
    return plain


def _plain(node: Any, *, names: bool = False) -> Any:
    """`names`: the keys are names of fields or definitions, not words of the schema."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    if not names and {"type": "null"} in node.get("anyOf", ()):
        (given,) = (kind for kind in node["anyOf"] if kind != {"type": "null"})
        node = {**given, **{k: v for k, v in node.items() if k != "anyOf"}}
    idle = {"title", "pattern"} | ({"description"} if "properties" in node else set())  # a docstring
    return {
        key: _plain(value, names=not names and key in ("properties", "$defs"))
        for key, value in node.items()
        if names or not (key in idle or (key, value) in _IDLE)
    }
