"""The size of a request in tokens before it is sent: the endpoint's own count of a prefix, an estimate of the rest.

Only messages that came after the last answer are estimated, by the characters a token had in the latest request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lopen.models.messages import Json, Request, Usage
from lopen.models.prompts.parts import CHARS_PER_TOKEN

CACHED_S = 300.0  # how long an endpoint keeps a prefix that nobody asks for
DENSEST, THINNEST = 1.0, 8.0  # units a token may have; a count beyond tells nothing of the text


def units(text: str) -> int:
    """Measure a text so that the number grows with its tokens: ASCII by characters, all else twice its UTF-8 bytes.

    Four a token to begin with: half a token for each byte beyond ASCII, which no script is known to need more than.
    """
    if text.isascii():
        return len(text)
    ascii_only = len(text.encode("ascii", "ignore"))
    return ascii_only + 2 * (len(text.encode("utf-8", "surrogatepass")) - ascii_only)


@dataclass(frozen=True, slots=True)
class _Counted:
    """The endpoint's count of a conversation's last request: its tokens, and how many of them are cached."""

    messages: int
    last: Json
    units: int
    tokens: int
    cached: int
    asked_at: float

    def begins(self, messages: Sequence[Json]) -> bool:
        """Return True if the request with these messages continues the counted one."""
        return len(messages) >= self.messages and messages[self.messages - 1] is self.last


@dataclass
class RequestSizes:
    """The requests of one session, of all its conversations."""

    _units_a_token: float = float(CHARS_PER_TOKEN)  # in the latest request that the endpoint counted
    _known: dict[int, _Counted] = field(default_factory=dict)  # by conversation

    def estimate(self, request: Request, now: float) -> Usage:
        """Estimate the input: a prefix that was sent a moment ago is read from the cache, the rest written to it.

        `now` is monotonic.
        """
        known, whole = self._known.get(_conversation(request)), _units_of(request)
        if known is None or not known.begins(request.messages):
            return Usage(cache_write_tokens=self._tokens_in(whole) + 1)
        tokens = known.tokens + self._tokens_in(max(0, whole - known.units))
        cached = min(known.cached, tokens) if now - known.asked_at < CACHED_S else 0
        return Usage(cache_write_tokens=tokens - cached, cache_read_tokens=cached)

    def settled(self, request: Request, reported: Usage, now: float) -> Usage:
        """Return the use of a request as reported, else as estimated; later estimates learn from a report."""
        if reported.estimated and not reported.whole_input:
            known = self.estimate(request, now)
            return replace(known, output_tokens=reported.output_tokens, estimated=True)
        if reported.whole_input and request.messages:
            self._learn(request, reported, now)
        return reported

    def _learn(self, request: Request, reported: Usage, now: float) -> None:
        whole, tokens = _units_of(request), reported.whole_input
        self._units_a_token = min(THINNEST, max(DENSEST, whole / tokens))
        cached = reported.cache_read_tokens + reported.cache_write_tokens
        known = _Counted(len(request.messages), request.messages[-1], whole, tokens, cached, now)
        self._known[_conversation(request)] = known

    def _tokens_in(self, of_units: int) -> int:
        """Return the tokens that a text of so many units may have."""
        return int(of_units / self._units_a_token)


def _conversation(request: Request) -> int:
    """Return a number that all requests of a conversation share."""
    return hash((request.model, *(b.text for b in request.system), *(t.name for t in request.tools)))


def _units_of(request: Request) -> int:
    tools = sum(units(t.name + t.description + str(t.input_schema)) for t in request.tools)
    system = sum(units(block.text) for block in request.system)
    return tools + system + sum(units(str(m.get("content", ""))) for m in request.messages)
