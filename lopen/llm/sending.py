"""What of an answer goes back to the endpoint in the next request. Pure.

Thinking goes back unchanged, as the API wants it. What the API would refuse is mended or left out, so that a
slip of the model never becomes a request that cannot be sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lopen.llm.messages import Json, Response, ToolUse

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


def _blank(block: Json) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


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
