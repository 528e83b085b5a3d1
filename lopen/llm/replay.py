"""A recording as a model: each request must fit, then the recorded response is streamed through the real adapter.

Turns and oracle requests happen one after another and must come in the recorded order. Research agents may
run side by side, so each of their conversations is followed on its own.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from lopen.base.clock import Clock
from lopen.base.errors import LopenError
from lopen.llm.anthropic_model import AnthropicModel
from lopen.llm.fake_api.server import Answer, Message, MessagesEndpoint, Status
from lopen.llm.messages import OnText, Request, Response
from lopen.llm.recorded_calls import calls_since, last_assistant
from lopen.llm.recorder import opening
from lopen.llm.recording import RecordedExchange, Recording
from lopen.llm.replay_matching import first_difference
from lopen.settings.schema import Model as ModelSettings


class ReplayMismatch(LopenError):
    """A request does not fit the recording; the message names the first difference."""


class RecordingEnded(ReplayMismatch):
    """A request came after the last recorded exchange."""


class BrokenOff(ReplayMismatch):
    """A conversation goes on where the recorded one was broken off: by an interruption, a pause or a crash."""


class ReplayModel:
    """The `Model` port over a recording. A context manager: it owns a loopback endpoint.

    `step` says where the session stands. No key is needed, and no other endpoint is reached.
    """

    local = True

    def __init__(self, recording: Recording, *, step: Callable[[], str], clock: Clock) -> None:
        self._step = step
        self._left = list(recording.exchanges)
        self._followed: dict[str, int] = {}  # a tool call's id → the exchange that made it
        self._turn = threading.Lock()  # one answer at a time waits at the endpoint
        self._answer: Answer = Status(400, "nothing was asked of the recording")
        key = secrets.token_urlsafe(24)  # nobody else on this machine gets an answer
        self._endpoint = MessagesEndpoint(lambda body: self._answer, key=key)
        self._model = AnthropicModel(
            ModelSettings(provider="anthropic", base_url=self._endpoint.url), {}, clock, api_key=key
        )

    def __enter__(self) -> ReplayModel:
        self._endpoint.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._model.close()
        self._endpoint.__exit__(kind, error, trace)

    @property
    def left(self) -> int:
        """Exchanges not played yet; 0 after a whole replay."""
        return len(self._left)

    def connect(self) -> None:
        """As the model that plays it."""
        self._model.connect()

    def send(self, request: Request, on_text: OnText) -> Response:
        """The recorded response. Raises `ReplayMismatch` where the request does not fit."""
        with self._turn:
            exchange = self._fitting(request)
            self._answer = Message(
                content=exchange.content,
                stop_reason=exchange.stop_reason,
                usage=exchange.usage,
                model=exchange.model,
                unparsed=frozenset(exchange.unparsed),
            )
            response = self._model.send(request, on_text)
            self._left.remove(exchange)
            self._followed |= {use.id: exchange.n for use in response.tool_uses}
            return response

    def _fitting(self, request: Request) -> RecordedExchange:
        candidates = self._candidates(request)
        if not candidates:
            raise RecordingEnded(
                f"the recording has ended, but a request ({request.purpose}) came",
                hint="The run goes on longer than the recorded one: the project or lopen itself has changed.",
            )
        found: str | None = None
        for exchange in candidates:
            difference = self._difference(exchange, request)
            if difference is None:
                return exchange
            found = found or f"exchange {exchange.n}: {difference}"
        if self._broken_off(candidates[0], request):
            raise BrokenOff(
                f"before exchange {candidates[0].n} the recorded run was interrupted, and took its step up anew",
                hint="lopen replay SESSION interrupts and resumes where the recorded run did.",
            )
        raise ReplayMismatch(
            found or "the request does not fit the recording",
            hint="The project, its tools or lopen itself are not as they were when this was recorded.",
        )

    def _candidates(self, request: Request) -> Sequence[RecordedExchange]:
        """What may come next: the next of the main line, or the next of each research conversation."""
        if request.purpose != "research":
            return [e for e in self._left if e.purpose != "research"][:1]
        before, first = self._before(request), opening(request)
        waiting = [e for e in self._left if e.purpose == "research"]
        following = [e for e in waiting if e.after == before]
        return sorted(following or waiting[:1], key=lambda e: e.opening != first)

    def _broken_off(self, exchange: RecordedExchange, request: Request) -> bool:
        """A turn of a conversation that has begun, where the recording begins another one."""
        begun = last_assistant(request.messages) is not None
        return begun and exchange.after == 0 and (exchange.purpose, request.purpose) == ("turn", "turn")

    def _before(self, request: Request) -> int:
        """The exchange whose response this request goes on from; 0 where it begins a conversation."""
        at = last_assistant(request.messages)
        content: Any = request.messages[at]["content"] if at is not None else ()
        ids = (block.get("id", "") for block in content if isinstance(block, dict))
        return next((self._followed[i] for i in ids if i in self._followed), 0)

    def _difference(self, exchange: RecordedExchange, request: Request) -> str | None:
        return first_difference(
            exchange,
            purpose=request.purpose,
            step=self._step(),
            offered=[tool.name for tool in request.tools],
            calls=calls_since(request.messages),
        )
