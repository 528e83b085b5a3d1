"""The tool calls of a conversation as a recording compares them: tool, input, and what came of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lopen.llm.messages import Json


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call with its result. `passed` and `exit_code` are None where the tool gives none."""

    tool: str
    input: Json
    ok: bool
    passed: bool | None = None
    exit_code: int | None = None


def calls_since(messages: Sequence[Json]) -> tuple[RecordedCall, ...]:
    """The calls of the last assistant message, in its order, with the results that follow it.

    Whatever came earlier in the conversation was part of an earlier request.
    """
    at = last_assistant(messages)
    if at is None:
        return ()
    results = {b.get("tool_use_id"): b for message in messages[at + 1 :] for b in _blocks(message)}
    return tuple(
        _call(block, results[block["id"]])
        for block in _blocks(messages[at])
        if block.get("type") == "tool_use" and block.get("id") in results
    )


def last_assistant(messages: Sequence[Json]) -> int | None:
    """Where the last assistant message stands."""
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i]["role"] == "assistant"), None)


def result_fields(block: Json) -> dict[str, Any]:
    """The JSON object on the first line of a tool result; empty where there is none."""
    line = result_text(block).partition("\n")[0]
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def result_text(block: Json) -> str:
    """A tool result's text, whole."""
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))


def _call(use: Json, result: Json) -> RecordedCall:
    fields = result_fields(result)
    ok = fields.get("ok")
    passed, exit_code = fields.get("passed"), fields.get("exit_code")
    return RecordedCall(
        tool=str(use.get("name", "")),
        input=use.get("input") or {},
        ok=ok if isinstance(ok, bool) else not result.get("is_error", False),
        passed=passed if isinstance(passed, bool) else None,
        exit_code=exit_code if isinstance(exit_code, int) and not isinstance(exit_code, bool) else None,
    )


def _blocks(message: Json) -> Iterator[Json]:
    content = message["content"]
    if not isinstance(content, str):
        yield from content
