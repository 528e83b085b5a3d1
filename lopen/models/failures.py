"""Classification of refused requests: retry, shrink the context, or report. One table for all providers. Pure.

The adapter that imports the SDK takes the endpoint's answer apart and passes it to `classify`.

See docs/reference/model.md.
"""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from lopen.models.messages import ContextTooLong, ModelError, Rejected, TransientFailure

TRANSIENT_STATUS: Final = frozenset({408, 409, 425, 429})
PERMANENT_KINDS: Final = {  # error type inside a stream → the status it corresponds to
    "invalid_request_error": 400,
    "validationException": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}
TOO_LONG: Final = re.compile(
    r"prompt is too long|input is too long|exceeds? (the )?(model'?s? )?(maximum )?context|context (window|limit|length)"
    r"|request_too_large|too many (input )?tokens",
    re.IGNORECASE,
)
MAX_WAIT_S: Final = 366 * 86_400.0
MAX_MESSAGE_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class Refusal:
    """The endpoint's answer instead of a response. `status` is 200 if an error event ended a started stream."""

    status: int
    kind: str  # the API's error type, or empty
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case


def classify(
    refusal: Refusal, *, model: str, now: datetime, credentials_hint: str = "Set the endpoint's key."
) -> ModelError:
    """Return the failure to raise. `now` is needed for a `retry-after` with a date."""
    in_stream = refusal.status < 300
    status = PERMANENT_KINDS.get(refusal.kind, 500) if in_stream else refusal.status
    text = _message(refusal)
    if status in TRANSIENT_STATUS or status >= 500:
        return TransientFailure(text, refusal.status, retry_after_s=retry_after_s(refusal.headers, now))
    if status == 413 or (status == 400 and TOO_LONG.search(f"{refusal.kind} {refusal.message}")):
        return ContextTooLong(text, refusal.status)
    return Rejected(text, refusal.status, hint=_hint(status, refusal.message, model, credentials_hint))


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait from `retry-after-ms`, or else `retry-after` (seconds or an HTTP date)."""
    asked = _number(headers.get("retry-after-ms"))
    if asked is not None:
        return _bounded(asked / 1000)
    asked = _number(headers.get("retry-after"))
    return _bounded(asked) if asked is not None else _until(headers.get("retry-after", ""), now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _until(date: str, now: datetime) -> float | None:
    try:
        then = email.utils.parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if then.tzinfo is None:  # "-0000" means UTC without a known location
        then = then.replace(tzinfo=UTC)
    return _bounded((then - now).total_seconds())


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_WAIT_S)


def _message(refusal: Refusal) -> str:
    """Return the refusal on one line, with the endpoint's message shortened."""
    where = "the stream" if refusal.status < 300 else f"HTTP {refusal.status}"
    kind, reason = (" ".join(text.split())[:MAX_MESSAGE_CHARS] for text in (refusal.kind, refusal.message))
    return f"the model endpoint refused ({where}{', ' + kind if kind else ''}): {reason or 'no reason given'}"


def _hint(status: int, message: str, model: str, credentials_hint: str) -> str:
    if "credit balance" in message or status == 402:
        return "Add credit to the account, then run `lopen resume`."
    if status == 401:
        return f"The endpoint refused the key. {credentials_hint} `lopen doctor --online` tries it."
    if status == 403:
        return f"This key may not use {model}. Use another key, or another model with --model."
    if status == 404:
        return f"Check the model's name ({model}; settings models.*, oracle.model or --model) and the endpoint's address."
    if status == 400:
        return (
            f"The endpoint rejected the request as invalid; {model} may not support a part of it. Try another model"
            " with --model, or other settings: `lopen config show model` lists them."
        )
    return "Run `lopen doctor` to find the part of the connection that does not work."
