"""The size of a request in tokens before it is sent: the endpoint's own counts, and an estimate of the rest.

The endpoint's own count of a prefix is exact, so only messages that came after it are estimated, by the characters a
token had in this session so far. Pure where it decides; a message is measured once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lopen.models.messages import Json, Request, Usage
from lopen.models.prompts.parts import CHARS_PER_TOKEN

CACHED_S = 300.0  # how long an endpoint keeps a prefix that nobody asks for
CONVERSATIONS_KEPT = 8
DENSEST, THINNEST = 1.0, 8.0  # units a token may have; a count beyond tells nothing of the text
LEARNT_TOKENS, FADING = 2_000, 0.8  # what one answer may teach at most, and what stays of the earlier


def units(text: str) -> int:
    """A measure that grows with the tokens: ASCII by characters, all else twice its UTF-8 bytes.

    Four a token to begin with: half a token for each byte beyond ASCII, which no script is known to need more than.
    """
    if text.isascii():
        return len(text)
    ascii_only = len(text.encode("ascii", "ignore"))
    return ascii_only + 2 * (len(text.encode("utf-8", "surrogatepass")) - ascii_only)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Units a token has in this session."""

    units: float = float(CHARS_PER_TOKEN)
    tokens: float = 1.0

    @property
    def per_token(self) -> float:
        """Within what text can have."""
        return min(THINNEST, max(DENSEST, self.units / self.tokens))

    def taught(self, of_units: int, tokens: int) -> Ratio:
        """After `tokens` were counted for so many units: the newest count most, a long one no more than another."""
        if of_units <= 0 or tokens <= 0:
            return self
        share = min(1.0, LEARNT_TOKENS / tokens)
        kept = 0.0 if self == Ratio() else FADING
        return Ratio(self.units * kept + of_units * share, self.tokens * kept + tokens * share)

    def tokens_of(self, of_units: int) -> int:
        """Tokens that a text of so many units may have."""
        return int(of_units / self.per_token)


@dataclass(frozen=True, slots=True)
class Known:
    """The endpoint's count of a request's first messages: their tokens with all before them, and how many it caches."""

    messages: int
    units: int
    tokens: int
    cached: int


def estimated(known: Known | None, whole_units: int, ratio: Ratio, *, warm: bool) -> Usage:
    """The input of a request of `whole_units` that begins with what is `known`; `warm`: that is still cached."""
    if known is None:
        return Usage(cache_write_tokens=ratio.tokens_of(whole_units) + 1)
    whole = known.tokens + ratio.tokens_of(max(0, whole_units - known.units))
    cached = min(known.cached, whole) if warm else 0
    return Usage(cache_write_tokens=whole - cached, cache_read_tokens=cached)


@dataclass
class _Conversation:
    """Requests with one head, each the last one with more messages, or with some taken away."""

    head_units: int
    measured: list[tuple[Json, int]] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    asked_at: float = 0.0

    def measure(self, messages: Sequence[Json]) -> int:
        """Units of the whole; what is said of messages that are no longer there is forgotten."""
        same = 0
        for (before, _), now in zip(self.measured, messages, strict=False):
            if before is not now:
                break
            same += 1
        del self.measured[same:]
        self.measured += [(m, units(str(m.get("content", "")))) for m in messages[same:]]
        while self.known and self.known[-1].messages > same:
            self.known.pop()
        return self.head_units + sum(size for _, size in self.measured)


@dataclass
class RequestSizes:
    """The requests of one session, whatever conversations they belong to."""

    _ratio: Ratio = Ratio()
    _open: dict[int, _Conversation] = field(default_factory=dict)

    def tokens(self, request: Request) -> int:
        """Its input tokens, from the cache or not."""
        return self.estimate(request, 0.0).cache_write_tokens

    def estimate(self, request: Request, now: float) -> Usage:
        """Its input: a prefix that was sent a moment ago is read from the cache, the rest written to it.

        `now` is monotonic.
        """
        talk = self._conversation(request)
        whole = talk.measure(request.messages)
        known = talk.known[-1] if talk.known else None
        return estimated(known, whole, self._ratio, warm=now - talk.asked_at < CACHED_S)

    def settled(self, request: Request, reported: Usage, now: float) -> Usage:
        """Return what a request used: as reported, from which later estimates learn, else as estimated."""
        if reported.estimated and not reported.whole_input:
            known = self.estimate(request, now)
            return replace(known, output_tokens=reported.output_tokens, estimated=True)
        if reported.whole_input:
            self.learn(request, reported, now)
        return reported

    def learn(self, request: Request, usage: Usage, now: float) -> None:
        """Record what the endpoint counted for `request`."""
        tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if tokens <= 0:
            return
        talk = self._conversation(request)
        whole, count = talk.measure(request.messages), len(request.messages)
        before = talk.known[-1] if talk.known else Known(0, 0, 0, 0)
        self._ratio = self._ratio.taught(whole - before.units, tokens - before.tokens)
        if before.messages == count and talk.known:
            talk.known.pop()
        talk.known.append(Known(count, whole, tokens, usage.cache_read_tokens + usage.cache_write_tokens))
        talk.asked_at = now

    def _conversation(self, request: Request) -> _Conversation:
        key = hash((request.model, *(b.text for b in request.system), *(t.name for t in request.tools)))
        talk = self._open.pop(key, None) or _Conversation(_head_units(request))
        self._open[key] = talk
        while len(self._open) > CONVERSATIONS_KEPT:
            del self._open[next(iter(self._open))]
        return talk


def _head_units(request: Request) -> int:
    tools = sum(units(t.name + t.description + str(t.input_schema)) for t in request.tools)
    return tools + sum(units(block.text) for block in request.system)
