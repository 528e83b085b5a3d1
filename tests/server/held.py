"""A turn of the scripted endpoint that waits until the test lets it go on."""

from __future__ import annotations

import threading
from typing import Any

from tests.fake_api import Message

HELD_S = 60


class Held:
    """A turn that is answered when the test lets it go on."""

    def __init__(self, answer: Message) -> None:
        self._answer = answer
        self.reached = threading.Event()
        self._let_go = threading.Event()

    def let_go(self) -> None:
        self._let_go.set()

    def __call__(self, body: dict[str, Any]) -> Message:
        self.reached.set()
        assert self._let_go.wait(HELD_S)
        return self._answer
