"""The conversation's own vocabulary, independent of any SDK: requests, responses, usage, failures.

Content blocks are kept as the plain JSON objects of the Messages API, because they must be sent back
unchanged (thinking blocks with their signatures, for one). `Model` is the port; its adapters live beside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from lopen.base.errors import LopenError

Json = Mapping[str, Any]

StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request as the endpoint reports them (not weighted)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
        )

    def billed(self, cache_read_weight: float = 0.1) -> int:
        """Tokens as budgets count them: reads from the cache at their weight, all else whole."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_write_tokens
            + round(self.cache_read_tokens * cache_read_weight)
        )


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the model; `input_schema` is JSON Schema."""

    name: str
    description: str
    input_schema: Json


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One piece of the system prompt. `cached` puts a prompt-cache mark after it (at most four a request)."""

    text: str
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One turn's request. `messages` are Messages API objects ({"role", "content": [blocks]})."""

    model: str
    system: Sequence[SystemBlock]
    messages: Sequence[Json]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int = 16_000
    tool_choice: str | None = None  # a tool's name, to force it
    purpose: str = "turn"  # "turn", "oracle" or "research": for records, never sent


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call the model asked for. `input` is None where its JSON did not parse; `error` says why."""

    id: str
    name: str
    input: Json | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response: it exists only once `message_stop` has come."""

    id: str
    model: str
    content: Sequence[Json]
    tool_uses: Sequence[ToolUse]
    stop_reason: StopReason
    usage: Usage
    request_id: str = ""

    @property
    def text(self) -> str:
        """All text blocks, joined."""
        return "".join(b["text"] for b in self.content if b.get("type") == "text")


OnText = Callable[[str], None]


class Model(Protocol):
    """One attempt at one request. Raises a `ModelError`; never retries by itself."""

    def send(self, request: Request, on_text: OnText) -> Response:
        """Stream `request`; `on_text` gets visible text as it comes. Returns only whole responses."""
        ...

    def connect(self) -> None:
        """Find what is needed to send (libraries, credentials) now; `LopenError` where something lacks. Sends nothing."""
        ...


class NoCredentials(LopenError):
    """Nothing is there to authenticate a request with."""


@dataclass(eq=False)
class ModelError(Exception):
    """A request that brought no response. Nothing of it was run, nothing of it counts.

    Compared by identity: an exception must stay hashable.
    """

    message: str
    status: int | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class TransientFailure(ModelError):
    """Worth another try: 408, 409, 429, 5xx, 529, an error event, connection and protocol errors, cut streams."""

    retry_after_s: float | None = None


@dataclass(eq=False)
class ContextTooLong(ModelError):
    """The prompt does not fit: the iteration starts again from saved state with a smaller context."""


@dataclass(eq=False)
class Rejected(ModelError):
    """Another 4xx, or no key: no retry can help. `hint` says what a person can do."""

    hint: str = ""


@dataclass(eq=False)
class Unavailable(ModelError):
    """Every try and every fallback was used up, or the endpoint asked to wait long. `until` where it said so."""

    until: datetime | None = None


@dataclass
class ScriptedModel:
    """The port's fake: answers from a list, and keeps what it was sent in `requests`."""

    answers: list[Response | ModelError]
    requests: list[Request] = field(default_factory=list)

    def connect(self) -> None:
        """Nothing is needed."""

    def send(self, request: Request, on_text: OnText) -> Response:
        self.requests.append(request)
        if not self.answers:
            raise Rejected("the scripted model has no answer left")
        answer = self.answers.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        if answer.text:
            on_text(answer.text)
        return answer
