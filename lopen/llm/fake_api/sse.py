"""A whole message as the server-sent events in which the Messages API streams it. Pure; the reverse is `assembly`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

from lopen.llm.messages import Json, Usage

PIECE: Final = 4096  # characters a delta; real ones are shorter, which would only cost time here


def encode(event: Json) -> bytes:
    """One event on the wire."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def message_events(message: Json, usage: Usage, unparsed: Collection[str] = ()) -> Iterator[Json]:
    """The events of `message` (`id`, `model`, `content`, `stop_reason`), in order.

    `unparsed` names tool calls whose input is streamed as JSON that breaks off: a recording of such a
    call has nothing else to give.
    """
    start = {
        "id": message["id"],
        "type": "message",
        "role": "assistant",
        "model": message["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_fields(usage, output=1),
    }
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block, block.get("id") in unparsed)
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": usage_fields(usage, output=usage.output_tokens),
    }
    yield {"type": "message_stop"}


def usage_fields(usage: Usage, output: int) -> dict[str, int]:
    """`usage` in the API's own names."""
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": output,
    }


def _block_events(index: int, block: Json, cut: bool) -> Iterator[Json]:
    start, deltas = _apart(block, cut)
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _apart(block: Json, cut: bool) -> tuple[Json, Iterator[Json]]:
    """A block as it starts, and the deltas that make it whole. Kinds without deltas come at once."""
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": ""}, _pieces("text_delta", "text", block["text"])
    if kind == "thinking":
        return {**block, "thinking": "", "signature": ""}, _thinking(block)
    if kind in ("tool_use", "server_tool_use"):
        raw = "{" if cut else json.dumps(block["input"], ensure_ascii=False)
        return {**block, "input": {}}, _pieces("input_json_delta", "partial_json", raw)
    return block, iter(())


def _thinking(block: Json) -> Iterator[Json]:
    yield from _pieces("thinking_delta", "thinking", block["thinking"])
    yield {"type": "signature_delta", "signature": block.get("signature", "")}


def _pieces(kind: str, field: str, text: str) -> Iterator[dict[str, Any]]:
    for at in range(0, len(text), PIECE):
        yield {"type": kind, field: text[at : at + PIECE]}
