"""How large a request is, roughly, before anything is paid for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lopen.llm.messages import Json, Request
from lopen.prompts.parts import CHARS_PER_TOKEN


@dataclass
class RequestSizes:
    """Counts requests of one conversation: what an earlier one had in the same place is not counted again."""

    _head: tuple[object, object] = (None, None)
    _head_chars: int = 0
    _counted: list[tuple[Json, int]] = field(default_factory=list)

    def tokens(self, request: Request) -> int:
        """A rough count of its input tokens: characters by four."""
        chars = self._of_head(request) + self._of_messages(request.messages)
        return chars // CHARS_PER_TOKEN + 1

    def _of_head(self, request: Request) -> int:
        if self._head[0] is not request.system or self._head[1] is not request.tools:
            self._head = (request.system, request.tools)
            chars = sum(len(block.text) for block in request.system)
            self._head_chars = chars + sum(
                len(t.name) + len(t.description) + len(str(t.input_schema)) for t in request.tools
            )
        return self._head_chars

    def _of_messages(self, messages: Sequence[Json]) -> int:
        known = self._counted
        same = 0
        while same < min(len(known), len(messages)) and known[same][0] is messages[same]:
            same += 1
        del known[same:]
        known += [(message, len(str(message.get("content", "")))) for message in messages[same:]]
        return sum(chars for _, chars in known)
