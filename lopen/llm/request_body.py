"""A request as the JSON body of the Messages API: what is sent, in which order, and where the cache marks go. Pure.

The stable part comes first (tools, then system), so that prompt caching can hold it. The API allows four
cache marks: the system's own come first, then the last user messages, so that a growing conversation is
read from the cache and not paid for again each turn. The mark before the last one is where the previous
request ended: without it a turn of more than twenty blocks would miss its own prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from lopen.llm.messages import Json, Request, Response, SystemBlock, ToolSpec, ToolUse

MAX_MARKS: Final = 4
CONVERSATION_MARKS: Final = 2
MARK: Final[Json] = {"type": "ephemeral"}
UNMARKABLE: Final = frozenset({"thinking", "redacted_thinking"})  # the API refuses a mark on these


def body_of(request: Request) -> dict[str, Any]:
    """The body for `POST /v1/messages`, streaming. The request's own objects are never changed."""
    system = _system(request.system)
    marks_left = MAX_MARKS - sum("cache_control" in block for block in system)
    messages = _messages(request.messages)
    if request.purpose != "oracle":  # one question, one answer: nothing will be read again
        _mark_conversation(messages, min(marks_left, CONVERSATION_MARKS))
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "stream": True,
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
    """Blank blocks are left out; of more than four marks the last four stay, for they hold the longest prefixes."""
    kept = [block for block in blocks if block.text.strip()]
    marked = [index for index, block in enumerate(kept) if block.cached][-MAX_MARKS:]
    return [
        {"type": "text", "text": block.text} | ({"cache_control": MARK} if index in marked else {})
        for index, block in enumerate(kept)
    ]


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def _messages(messages: Sequence[Json]) -> list[dict[str, Any]]:
    """Messages with blank text left out, and messages that hold nothing else: the API refuses both."""
    shown = ({"role": message["role"], "content": _content(message["content"])} for message in messages)
    return [message for message in shown if message["content"]]


def _content(content: str | Sequence[Json]) -> list[Json]:
    blocks: Sequence[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_without_blanks(block) for block in blocks if not _blank(block)]


def _blank(block: Json) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def _without_blanks(block: Json) -> Json:
    """A tool result without blank text inside; every other block as it is."""
    inner = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(inner, (list, tuple)):
        return block
    if not any(_blank(part) for part in inner):
        return block
    return {**block, "content": [part for part in inner if not _blank(part)]}


def _mark_conversation(messages: list[dict[str, Any]], marks: int) -> None:
    """Marks the last block of the last message and of the user messages before it, `marks` in all."""
    last = len(messages) - 1
    places = [i for i in range(last, -1, -1) if i == last or messages[i]["role"] == "user"]
    for index in places[:marks]:
        content = list(messages[index]["content"])
        if content[-1].get("type") in UNMARKABLE:
            continue
        content[-1] = {**content[-1], "cache_control": MARK}
        messages[index]["content"] = content


LONGEST_TEXT: Final = 100_000  # characters of one text block that are sent back; only calls move anything
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")  # what the API takes in no tool's name
_LONGEST_NAME: Final = 128


def text_block(text: str) -> Json:
    """A text block of a message."""
    return {"type": "text", "text": text}


def sendable(content: Sequence[Json]) -> list[Json]:
    """Content blocks as the endpoint takes them back: no blank text, no flood of it, no name that is none."""
    return [_mended(block) for block in content if not _blank(block)]


def can_stand_last(content: Sequence[Json]) -> bool:
    """Whether the endpoint takes a request that ends with this answer: with something, and not with blanks."""
    last = str(content[-1].get("text", "")) if content else " "
    return last == last.rstrip()


def cut_call(response: Response) -> ToolUse | None:
    """The call that `max_tokens` cut: the answer's last block, if that is a call."""
    if response.stop_reason != "max_tokens" or not response.tool_uses:
        return None
    last = response.tool_uses[-1]
    return last if response.content[-1].get("id") == last.id else None


def _mended(block: Json) -> Json:
    if block.get("type") == "text":
        return _shortened(block)
    if block.get("type") == "tool_use":
        name = _NO_NAME.sub("_", str(block["name"]))[:_LONGEST_NAME]
        return block if name == block["name"] else {**block, "name": name}
    return block


def _shortened(block: Json) -> Json:
    text, half = str(block.get("text", "")), LONGEST_TEXT // 2
    left_out = len(text) - 2 * half
    if left_out <= 0:
        return block
    return {**block, "text": f"{text[:half]}\n[{left_out} characters left out by lopen]\n{text[-half:]}"}
