"""Requests, responses, usage and failures of a conversation, independent of any SDK.

Content blocks are the plain JSON objects of the Messages API, because they must be sent back unchanged, for example
thinking blocks with their signatures. `Model` is the port; its adapters are the other modules of this room.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import add
from typing import Any, Literal, Protocol

from lopen.core.errors import LopenError

Json = Mapping[str, Any]
CACHE_READ_WEIGHT = 0.1  # share of a token that a token read from the prompt cache counts as

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
    """Tokens of requests by kind, as the endpoint reports them, not weighted. `estimated`: it does not report them all."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    estimated: bool = field(default=False, kw_only=True)

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, self.counts, other.counts), estimated=self.estimated or other.estimated)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The four counts, in order."""
        return self.input_tokens, self.output_tokens, self.cache_write_tokens, self.cache_read_tokens

    @property
    def whole_input(self) -> int:
        """The tokens of the request, cached ones included."""
        return self.input_tokens + self.cache_write_tokens + self.cache_read_tokens

    def billed(self) -> int:
        """Return the tokens as budgets count them: cache reads at their weight, all others fully."""
        whole = self.input_tokens + self.output_tokens + self.cache_write_tokens
        return whole + round(self.cache_read_tokens * CACHE_READ_WEIGHT)


ESTIMATED_USAGE = "the endpoint does not report what requests use: lopen counts estimates, shown with ≤"
ZERO_USAGE = "the endpoint reports 0 tokens for a request: limits on tokens and cost do not hold for what it does not count"


def usage_doubt(usage: Usage) -> str:
    """Return the warning for an endpoint that does not count tokens, "" if it counts them."""
    return ESTIMATED_USAGE if usage.estimated else "" if usage.whole_input else ZERO_USAGE


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the model; `input_schema` is JSON Schema."""

    name: str
    description: str
    input_schema: Json


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One block of the system prompt. `cached` puts a prompt-cache mark after it (at most four per request)."""

    text: str
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One turn's request. `messages` are Messages API objects ({"role", "content": [blocks]})."""

    model: str
    system: Sequence[SystemBlock]
    messages: Sequence[Json]
    tools: Sequence[ToolSpec] = ()
    max_tokens: int = 32_000
    tool_choice: str | None = None  # a tool's name, to force it
    purpose: str = "turn"  # "turn", "oracle" or "research": for records, never sent


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call by the model. `input` is None if its JSON is not valid; `error` then holds the reason."""

    id: str
    name: str
    input: Json | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response, with `message_stop` received."""

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


def parse_input(raw: str) -> tuple[Json | None, str]:
    """Parse a tool call's input; return it and "", or None and the reason why it is not a JSON object."""
    try:
        value = json.loads(raw)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()  # no NaN, no half of a surrogate pair
    except (ValueError, RecursionError) as error:
        return None, f"the input is not valid JSON: {error}"
    if not isinstance(value, dict):
        return None, f"the input is a JSON {type(value).__name__}, not an object"
    return value, ""


def unheard(text: str, tool: str = "") -> None:
    """Do nothing with what streams in."""


class OnText(Protocol):
    """Receives what streams in: visible text, or (with `tool`) the next piece of that tool's input."""

    def __call__(self, text: str, tool: str = "") -> None: ...


class OnUsage(Protocol):
    """Receives the use of an unfinished answer so far."""

    def __call__(self, usage: Usage) -> None: ...


def ignore_usage(usage: Usage) -> None:
    """Do nothing with the use of an unfinished answer."""


class Model(Protocol):
    """A port that attempts one request. It raises `ModelError` and does not retry."""

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        """Send `request` and return the complete response; `on_text` receives visible text as it arrives.

        `on_usage` receives the use of the answer so far: its input as announced, its output estimated.
        """
        ...

    def connect(self) -> None:
        """Find libraries and credentials without sending anything; raises `LopenError` if one is missing."""
        ...


class NoCredentials(LopenError):
    """There are no credentials for a request."""


@dataclass(eq=False)
class ModelError(Exception):
    """A request without a response. It has no effect and does not count.

    Compared by identity, because exceptions must be hashable.
    """

    message: str
    status: int | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class TransientFailure(ModelError):
    """A retry may help: 408, 409, 429, 5xx, 529, error events, connection and protocol errors, truncated streams."""

    retry_after_s: float | None = None
    retries: int | None = None  # the most that may help; None: as many as the settings allow
    unreachable: bool = False  # no connection to the endpoint: no model answers there


@dataclass(eq=False)
class ContextTooLong(ModelError):
    """The prompt is too long: the iteration restarts from saved state with a smaller context."""


@dataclass(eq=False)
class Rejected(ModelError):
    """Another 4xx status, or no key: a retry does not help. `hint` tells the user what to do."""

    hint: str = ""


@dataclass(eq=False)
class Unavailable(ModelError):
    """All attempts and fallbacks failed, or the endpoint asked to wait long, `until` the given time."""

    until: datetime | None = None
