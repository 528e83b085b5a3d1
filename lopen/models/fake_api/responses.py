"""Responses of the endpoint: a message as server-sent events, and its estimated usage with a prompt cache.

The cache follows the rules of the real one, so that the share of cached input can be measured without it: prefixes
in the order tools, system, messages; stored at a mark; found at a mark or up to twenty blocks before it; at least
1,024 tokens long. Entries do not expire, because a process does not run long enough.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from lopen.models.messages import Json, Usage

DELTA_CHARS: Final = 4096  # real deltas are shorter, which would only take more time here
CHARACTERS_PER_TOKEN: Final = 4
LOOK_BACK: Final = 20
SMALLEST: Final = 1024


def encode(event: Json) -> bytes:
    """Return the bytes of one event."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def message_events(message: Json, usage: Usage, unparsed: Collection[str] = ()) -> Iterator[Json]:
    """Yield the events of `message` (`id`, `model`, `content`, `stop_reason`), in order.

    `unparsed` lists tool calls whose input is streamed as truncated JSON, because a recording does not have their
    input.
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
    """Return `usage` with the API's field names."""
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
    """Split a block into its start and its deltas. Kinds without deltas are sent at once."""
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
    for at in range(0, len(text), DELTA_CHARS):
        yield {"type": kind, field: text[at : at + DELTA_CHARS]}


@dataclass(frozen=True, slots=True)
class _Prefix:
    digest: bytes
    tokens: int
    marked: bool


class PromptCache:
    """The prefixes seen so far. Thread-safe."""

    def __init__(self, smallest: int = SMALLEST) -> None:
        self._smallest = smallest
        self._kept: set[bytes] = set()
        self._lock = threading.Lock()

    def input_usage(self, body: Json) -> Usage:
        """Return the input tokens of one request, split as the API reports them, and store its marked prefixes."""
        prefixes = list(_prefixes(body))
        total = prefixes[-1].tokens if prefixes else 0
        marks = [i for i, prefix in enumerate(prefixes) if prefix.marked and prefix.tokens >= self._smallest]
        with self._lock:
            read = max((self._found(prefixes, mark) for mark in marks), default=0)
            self._kept.update(prefixes[mark].digest for mark in marks)
        written = max((prefixes[mark].tokens for mark in marks), default=read) - read
        return Usage(total - read - written, 0, cache_write_tokens=written, cache_read_tokens=read)

    def _found(self, prefixes: list[_Prefix], mark: int) -> int:
        """Return the tokens of the longest stored prefix at or shortly before this mark."""
        for prefix in reversed(prefixes[max(0, mark - LOOK_BACK) : mark + 1]):
            if prefix.digest in self._kept:
                return prefix.tokens
        return 0


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text: four characters per token."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _prefixes(body: Json) -> Iterator[_Prefix]:
    """Yield the prompt up to the end of each block. The digest includes the model, because caches are per model."""
    digest = hashlib.blake2b(str(body.get("model")).encode(), digest_size=16)
    tokens = 0
    for where, block in _prompt_blocks(body):
        text = json.dumps([where, {k: v for k, v in block.items() if k != "cache_control"}], sort_keys=True)
        digest.update(text.encode())
        tokens += estimated_tokens(text)
        yield _Prefix(digest.digest(), tokens, "cache_control" in block)


def _prompt_blocks(body: Json) -> Iterator[tuple[str, dict[str, Any]]]:
    for tool in body.get("tools", ()):
        yield "tool", tool
    for part, content in (
        ("system", body.get("system", ())),
        *((m["role"], m["content"]) for m in body["messages"]),
    ):
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            yield part, block
