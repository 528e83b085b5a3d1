"""A turn of the scripted endpoint that waits until the test lets it go on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from lopen.models.messages import Usage
from tests.fake_api import Answer, Message, Raw, encode, message_events

HELD_S = 60


class Held:
    """A turn that is answered when the test lets it go on; its first words are streamed before that."""

    def __init__(self, answer: Message, begin: str = "") -> None:
        self._answer = answer
        self._begin = begin
        self._let_go = threading.Event()

    def let_go(self) -> None:
        self._let_go.set()

    def __call__(self, body: dict[str, Any]) -> Answer:
        if self._begin:
            return Raw(_Pieces(self._events(str(body["model"])), self._let_go))
        assert self._let_go.wait(HELD_S)
        return self._answer

    def _events(self, model: str) -> list[bytes]:
        blocks: list[Any] = [{"type": "text", "text": self._begin}, *self._answer.content]
        blocks = [
            {"id": f"toolu_held_{i}", **b} if b["type"] == "tool_use" else b for i, b in enumerate(blocks)
        ]
        whole = {"id": "msg_held", "model": model, "content": blocks, "stop_reason": self._answer.stop_reason}
        events = [encode(event) for event in message_events(whole, self._answer.usage or Usage(10, 10))]
        events[3] += b": %b\n\n" % (b"-" * 20_000)  # a comment, larger than the buffer of the connection
        return events


class _Pieces(Sequence[bytes]):
    """The events of an answer, of which those after the first text wait."""

    def __init__(self, events: list[bytes], let_go: threading.Event) -> None:
        self._events = events
        self._let_go = let_go

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, at: Any) -> Any:
        if at == 4:  # message_start, ping, content_block_start, content_block_delta
            assert self._let_go.wait(HELD_S)
        return self._events[at]
