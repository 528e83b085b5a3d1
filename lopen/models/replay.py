"""A recording as a model: each request must match, then the recorded response is the answer.

Turns and the judge's requests must come in the recorded order. Each research agent's conversation has an order of its
own. Tool calls are compared by position, not by id, and text that differs from run to run is masked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from lopen.core.errors import LopenError
from lopen.models.messages import OnText, OnUsage, Request, Response, ToolUse, ignore_usage
from lopen.models.recording import (
    RecordedCall,
    RecordedExchange,
    Recording,
    calls_since,
    last_assistant,
    masked,
    opening,
)

LONGEST_SHOWN: Final = 60  # characters of a value in a message
MISSING: Final = "(nothing)"


class ReplayMismatch(LopenError):
    """A request does not match the recording; the message names the first difference."""


class RecordingEnded(ReplayMismatch):
    """A request came after the last recorded exchange."""


class RecordingInterrupted(ReplayMismatch):
    """The conversation continues where an interruption, a pause or a crash ended the recorded one."""


class ReplayModel:
    """The `Model` port over a recording. It needs no key and sends nothing.

    `step` returns the session's current step. `answered` exchanges were played by an earlier process.
    """

    local = True

    def __init__(self, recording: Recording, *, step: Callable[[], str], answered: int = 0) -> None:
        self._step = step
        self._left = list(recording.exchanges)[answered:]
        # Asked again where the earlier process ended before it used the answer.
        self._unused = list(recording.exchanges)[:answered][-1:]
        self._followed: dict[str, int] = {}  # a tool call's id → the exchange that made it
        self._turn = threading.Lock()

    @property
    def left(self) -> int:
        """The number of exchanges not replayed yet; 0 after a complete replay."""
        return len(self._left)

    @property
    def next_step(self) -> str:
        """The step of the next exchange; "" after a complete replay."""
        return self._left[0].step if self._left else ""

    def connect(self) -> None:
        """Do nothing: a recording needs no connection."""

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        """Return the recorded response; raises `ReplayMismatch` if the request does not match."""
        with self._turn:
            exchange = self._matching(request)
            response = _response(exchange)
            on_usage(response.usage)
            _stream(response, on_text)
            if exchange in self._left:
                self._left.remove(exchange)
            self._unused.clear()
            self._followed |= {use.id: exchange.n for use in response.tool_uses}
            return response

    def _matching(self, request: Request) -> RecordedExchange:
        candidates = self._candidates(request)
        if not self._left and not self._followed:
            raise RecordingEnded("the recording has no exchange: its run ended before the first answer")
        if not candidates:
            raise RecordingEnded(
                f"the recording has ended, but there is another request ({request.purpose})",
                hint="The run is longer than the recorded one: the project or lopen itself has changed.",
            )
        found: str | None = None
        for exchange in (*candidates, *self._unused):
            difference = self._difference(exchange, request)
            if difference is None:
                return exchange
            found = found or f"exchange {exchange.n}: {difference}"
        if self._is_interrupted(candidates[0], request):
            raise RecordingInterrupted(
                f"before exchange {candidates[0].n} the recorded run was interrupted, and restarted its step",
                hint="lopen replay SESSION interrupts and resumes where the recorded run did.",
            )
        raise ReplayMismatch(
            found or "the request does not match the recording",
            hint="The project, its tools or lopen itself have changed since the recording.",
        )

    def _candidates(self, request: Request) -> Sequence[RecordedExchange]:
        """Return the possible next exchanges: of the main conversation, or of each research conversation."""
        if request.purpose != "research":
            return [e for e in self._left if e.purpose != "research"][:1]
        before, first = self._before(request), opening(request)
        waiting = [e for e in self._left if e.purpose == "research"]
        following = [e for e in waiting if e.after == before]
        return sorted(following or waiting[:1], key=lambda e: e.opening != first)

    def _is_interrupted(self, exchange: RecordedExchange, request: Request) -> bool:
        """Return True if a conversation continues where the recording starts a new one."""
        continues = last_assistant(request.messages) is not None
        return continues and exchange.after == 0 and (exchange.purpose, request.purpose) == ("turn", "turn")

    def _before(self, request: Request) -> int:
        """Return the exchange whose response this request continues; 0 if it starts a conversation."""
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


def _response(exchange: RecordedExchange) -> Response:
    """Return the recorded response; a call whose input was not valid JSON is not valid again."""
    recorded = exchange.response
    uses = [
        ToolUse(block["id"], block["name"], None, "the input is not valid JSON, as in the recording")
        if block["id"] in recorded.unparsed
        else ToolUse(block["id"], block["name"], block["input"])
        for block in recorded.content
        if block.get("type") == "tool_use"
    ]
    return Response(
        id=f"msg_{exchange.n:06}",
        model=exchange.model,
        content=recorded.content,
        tool_uses=tuple(uses),
        stop_reason=recorded.stop_reason,
        usage=recorded.usage,
    )


def _stream(response: Response, on_text: OnText) -> None:
    """Pass on the events that a model would have streamed."""
    for block in response.content:
        if block.get("type") == "text":
            on_text(block["text"])
        elif block.get("type") == "tool_use":
            on_text(json.dumps(block["input"], ensure_ascii=False), block["name"])


def first_difference(
    exchange: RecordedExchange,
    *,
    purpose: str,
    step: str,
    offered: Sequence[str],
    calls: Sequence[RecordedCall],
) -> str | None:
    """Return the first difference from `exchange` in one line, or None if the request matches."""
    return (
        _differs("the kind of request", exchange.purpose, purpose)
        or _differs("the step", exchange.step, step)
        or _calls_differ(exchange.calls, calls)
        or _offers_differ(exchange.offered, offered)
    )


def _offers_differ(then: Sequence[str], now: Sequence[str]) -> str | None:
    gone, new = [n for n in then if n not in now], [n for n in now if n not in then]
    if gone:
        return f"the tool {_shown(gone[0])} was offered in the recording, is not now"
    if new:
        return f"the tool {_shown(new[0])} was not offered in the recording, is now"
    return None if list(then) == list(now) else "the tools are offered in another order than in the recording"


def _calls_differ(then: Sequence[RecordedCall], now: Sequence[RecordedCall]) -> str | None:
    for place, (was, is_now) in enumerate(zip(then, now, strict=False), start=1):
        where = f"tool call {place} {was.tool}: "
        before, after = _values(was), _values(is_now)
        for name in before | after:
            if difference := _differs(where + name, before.get(name, MISSING), after.get(name, MISSING)):
                return difference
    return _differs("the number of tool calls", len(then), len(now))


def _values(call: RecordedCall) -> dict[str, Any]:
    """Return the compared values of a call, by their names in a message."""
    given = {f"input.{_shown(key)[1:-1]}": value for key, value in call.input.items()}
    outcome = {"ok": call.ok, "passed": call.passed, "exit_code": call.exit_code}
    return {"the tool": call.tool, **given, **outcome}


def _differs(what: str, then: Any, now: Any) -> str | None:
    if _comparable(then) == _comparable(now):
        return None
    return f"{what} was {_shown(then)} in the recording, is {_shown(now)} now"


def _comparable(value: Any) -> str:
    """Return the value as JSON, without the parts that differ from run to run."""
    return masked(json.dumps(value, sort_keys=True, ensure_ascii=False))


def _shown(value: Any) -> str:
    """Return a short text in which `repr` escapes control characters."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
