"""Whether a request fits a recorded exchange, and the first thing in which it does not. Pure.

What differs from run to run without meaning anything is masked: times, hashes, durations, paths of
temporary folders. Ids of tool calls are never compared; calls are compared by their place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lopen.llm.recorded_calls import RecordedCall
from lopen.llm.recording import RecordedExchange

LONGEST_SHOWN: Final = 60

MASKS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        re.compile(r"(?:/private)?(?:/var/folders|/tmp|/var/tmp|/dev/shm)/[^\s'\"`:;,)\]}]+"),
        "<temporary path>",
    ),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<hash>"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,128}\b"), "<hash>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|milliseconds?|s|secs?|seconds?|min|minutes?)\b"), "<duration>"),
)


def masked(text: str) -> str:
    """`text` with what differs from run to run replaced."""
    for pattern, instead in MASKS:
        text = pattern.sub(instead, text)
    return text


def first_difference(
    exchange: RecordedExchange,
    *,
    purpose: str,
    step: str,
    offered: Sequence[str],
    calls: Sequence[RecordedCall],
) -> str | None:
    """What is not as in `exchange`, in one line, or None where the request fits."""
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
        where = f"tool call {place} {was.tool}:"
        difference = (
            _differs(f"{where} the tool", was.tool, is_now.tool)
            or _inputs_differ(f"{where} input", was.input, is_now.input)
            or _differs(f"{where} ok", was.ok, is_now.ok)
            or _differs(f"{where} passed", was.passed, is_now.passed)
            or _differs(f"{where} exit_code", was.exit_code, is_now.exit_code)
        )
        if difference:
            return difference
    return _differs("the number of tool calls", len(then), len(now))


def _inputs_differ(where: str, then: Any, now: Any) -> str | None:
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in then:
            if key not in now:
                return f"{where}.{_key(key)} was there in the recording, is missing now"
            difference = _inputs_differ(f"{where}.{_key(key)}", then[key], now[key])
            if difference:
                return difference
        extra = next((key for key in now if key not in then), None)
        return None if extra is None else f"{where}.{_key(extra)} was not there in the recording, is now"
    if isinstance(then, (list, tuple)) and isinstance(now, (list, tuple)) and len(then) == len(now):
        pairs = zip(then, now, strict=True)
        found = (_inputs_differ(f"{where}[{i}]", *pair) for i, pair in enumerate(pairs))
        return next((difference for difference in found if difference), None)
    return _differs(where, then, now)


def _differs(what: str, then: Any, now: Any) -> str | None:
    if (type(then) is type(now) and then == now) or _plain(then) == _plain(now):
        return None
    return f"{what} was {_shown(then)} in the recording, is {_shown(now)} now"


def _plain(value: Any) -> Any:
    """Comparable: masked, and with a type, so that true is not 1."""
    return masked(value) if isinstance(value, str) else (type(value).__name__, value)


def _shown(value: Any) -> str:
    """Short and inert: `repr` leaves no control character as it is."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def _key(key: object) -> str:
    text = str(key)
    return text if text.isidentifier() and len(text) <= LONGEST_SHOWN else _shown(key)
