"""Failed requests: classify the refusal, retry, then try the fallback models, then give up.

`classify` is one table for all providers: retry, shrink the context, or report. The adapter that imports the SDK takes
the endpoint's answer apart for it.

The first model gets `max_retries` retries per turn, each fallback only `FALLBACK_RETRIES`. After long attempts with
the first model, a fallback either answers soon or the endpoint is down.

See docs/reference/model.md.
"""

from __future__ import annotations

import email.utils
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from lopen.core.clock import Clock
from lopen.core.events import Event, ModelFallback, ModelRetry, Notice, Waiting
from lopen.models.messages import (
    ContextTooLong,
    Model,
    ModelError,
    OnText,
    OnUsage,
    Rejected,
    Request,
    Response,
    TransientFailure,
    Unavailable,
    Usage,
    ignore_usage,
)

TRANSIENT_STATUS: Final = frozenset({408, 409, 425, 429})
RATE_LIMITED: Final = frozenset({429, 529})
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
    """Return the seconds to wait that `retry-after` asks for, as a number or an HTTP date."""
    asked = headers.get("retry-after", "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(asked) - now).total_seconds()
        except (ValueError, OverflowError, TypeError):  # no date, or one without its time zone
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MAX_WAIT_S)


def _message(refusal: Refusal) -> str:
    """Return the refusal on one line, with the endpoint's message shortened."""
    if refusal.status == 401:
        return f"the model endpoint refused the key (HTTP 401): {' '.join(refusal.message.split())[:MAX_MESSAGE_CHARS]}"
    where = "the stream" if refusal.status < 300 else f"HTTP {refusal.status}"
    kind, reason = (" ".join(text.split())[:MAX_MESSAGE_CHARS] for text in (refusal.kind, refusal.message))
    return f"the model endpoint refused ({where}{', ' + kind if kind else ''}): {reason or 'no reason given'}"


def _hint(status: int, message: str, model: str, credentials_hint: str) -> str:
    if "credit balance" in message or status == 402:
        return "Add credit to the account, then run `lopen resume`."
    if status == 401:
        return credentials_hint
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


FALLBACK_RETRIES: Final = 2
TOLD_WAIT_S: Final = 1.0  # for the turn of this process
KEPT_EVERY_S: Final = 1.0  # of an answer that streams in
KEPT_S: Final = 600.0  # how long a fallback that answered is asked first
MAX_RETRY_AFTER_S: Final = 300.0  # for a longer wait the session pauses
GAPS_A_WAIT: Final = (
    16  # so many requests go out in the time that the endpoint asked to wait, one after another
)
LONGEST_GAP_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The first and the longest wait of lopen's own, in seconds, and the retries per turn."""

    base_s: float = 0.5
    max_wait_s: float = 30.0
    max_retries: int = 8


@dataclass(slots=True)
class TrackedModel:
    """A model, with the use of the request under way: an answer that breaks off after its start is billed.

    `keep` stores the use of `model` so far, for a process that ends here. `broken` charges an attempt that broke off and
    returns the longest answer, in tokens, that the budgets leave to the next attempt; it raises where they leave none.
    """

    model: Model
    keep: Callable[[str, Usage], None]
    broken: Callable[[str, Usage], int]
    clock: Clock
    under_way: bool = False
    name: str = ""  # of the model that is asked
    usage: Usage | None = None
    kept_at: float = 0.0
    longest: int | None = None  # answer of the next attempt

    def send(self, request: Request, on_text: OnText, on_usage: OnUsage = ignore_usage) -> Response:
        self.under_way, self.usage, self.kept_at = True, None, self.clock.monotonic()
        self.name = request.model
        if self.longest is not None:
            request = replace(request, max_tokens=min(request.max_tokens, self.longest))
        try:
            return self.model.send(request, on_text, self._used)
        except ModelError:
            self.under_way = False
            self._charge_broken()
            raise

    def _charge_broken(self) -> None:
        if self.usage is not None:
            self.longest = self.broken(self.name, self.usage)

    def keep_use(self) -> None:
        """Store the use of the request under way, as far as the model reported it."""
        if self.usage is not None:
            self.keep(self.name, self.usage)

    def _used(self, usage: Usage) -> None:
        self.usage, now = usage, self.clock.monotonic()
        if now - self.kept_at >= KEPT_EVERY_S:
            self.kept_at = now
            self.keep(self.name, usage)

    def connect(self) -> None:
        self.model.connect()


@dataclass(slots=True)
class Substitutes:
    """The fallbacks that answered in the place of a model, for ten minutes each, so that no turn waits for it again."""

    _kept: dict[str, tuple[str, float]] = field(default_factory=dict)  # model → its substitute, until when

    def order(self, model: str, fallbacks: Sequence[str], now: float) -> list[str]:
        """Return the models in the order to ask them; `now` is monotonic."""
        names = [model, *(name for name in dict.fromkeys(fallbacks) if name != model)]
        kept, until = self._kept.get(model, (model, 0.0))
        return names if now >= until else [kept, *(name for name in names if name != kept)]

    def answered(self, model: str, by: str, asked_first: str, now: float) -> None:
        """Remember that `by` answered a request for `model`, of which `asked_first` was tried before all others."""
        if by == model:
            self._kept.pop(model, None)
        elif by != asked_first:
            self._kept[model] = (by, now + KEPT_S)


@dataclass(frozen=True, slots=True)
class Turn:
    """The moment at which a process may send its request, by the clock of the bucket's place, and the wait until then."""

    at: float = 0.0
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """The token bucket of all processes: empty until `closed_until`, then one request each `gap_s` while some wait."""

    closed_until: float = 0.0
    next_at: float = 0.0
    gap_s: float = 0.0

    def refused(self, wait_s: float, now: float) -> Bucket:
        """Return the bucket after a refusal that asks for this wait; a longer one that was asked for before holds."""
        until = max(self.closed_until, now + wait_s)
        return Bucket(until, max(self.next_at, until), min(wait_s / GAPS_A_WAIT, LONGEST_GAP_S))

    def turn(self, at: float, now: float) -> tuple[Bucket, Turn]:
        """Return the turn of a process that was given `at` before (0: none): that one, unless a refusal came between."""
        if at and at >= self.closed_until:
            return self, Turn(at, max(0.0, at - now))
        if self.next_at <= now:
            return self, Turn(now)
        return replace(self, next_at=self.next_at + self.gap_s), Turn(self.next_at, self.next_at - now)


class SharedPace:
    """The pace that the endpoint's limits on the rate of requests ask of all processes. This one keeps no bucket."""

    def change_bucket(self, change: Callable[[Bucket, float], tuple[Bucket, Turn]]) -> Turn:
        """Keep what `change` makes of the bucket and the present time; return the turn beside it."""
        return Turn()

    def turn(self, at: float = 0.0) -> Turn:
        """Take a turn, or ask again for the one that was given before."""
        return self.change_bucket(lambda bucket, now: bucket.turn(at, now))

    def slow_down(self, seconds: float) -> None:
        """Let every process wait, since the endpoint refused a request for their number."""
        self.change_bucket(lambda bucket, now: (bucket.refused(seconds, now), Turn()))


@dataclass(slots=True)
class Retries:
    """The retries of requests, and the models that stand in for a silent one."""

    policy: RetryPolicy
    clock: Clock
    rng: random.Random
    substitutes: Substitutes = field(default_factory=Substitutes)
    pace: SharedPace = field(default_factory=SharedPace)

    def ask(
        self,
        model: Model,
        request: Request,
        on_text: OnText,
        notify: Callable[[Event], None],
        fallbacks: Sequence[str] = (),
    ) -> Response:
        """Return the response of the first model that answers.

        A repeated attempt passes its text to `on_text` again; `notify` receives the retry event in between. A rejected
        fallback is skipped, so that its error does not hide the temporary failure of the first model.

        Raises:
            Unavailable: all attempts and fallbacks failed, or the endpoint asked to wait more than five minutes.
            ContextTooLong: the prompt is too long.
            Rejected: the first model rejected the request.
        """
        names = self.substitutes.order(request.model, fallbacks, self.clock.monotonic())
        failures: list[str] = []
        for position, name in enumerate(names):
            if position:
                notify(ModelFallback(reason=failures[-1], from_model=names[position - 1], to_model=name))
            most = (
                self.policy.max_retries if position == 0 else min(FALLBACK_RETRIES, self.policy.max_retries)
            )
            try:
                response = self._attempt(model, replace(request, model=name), on_text, notify, most)
                self.substitutes.answered(request.model, name, names[0], self.clock.monotonic())
                return response
            except TransientFailure as failure:
                self._give_up_on_long_wait(failure)
                failures.append(str(failure))
            except Rejected as rejection:
                if name == request.model:
                    raise
                failures.append(str(rejection))
        raise Unavailable(f"no model answered. {_failure_list(names, failures)}")

    def _attempt(
        self, model: Model, request: Request, on_text: OnText, notify: Callable[[Event], None], most: int
    ) -> Response:
        """Return the response of one model; raises its last failure after `most` retries."""
        attempt, hopeless, first = 0, 0, self.clock.monotonic()
        while True:
            attempt += 1
            turn = self.pace.turn()
            if attempt == 1 and turn.wait_s >= TOLD_WAIT_S:  # another process was refused
                notify(Waiting("the endpoint limits the rate of requests", round(turn.wait_s, 3)))
            while turn.wait_s > 0:
                self.clock.sleep(turn.wait_s)
                turn = self.pace.turn(turn.at)
            try:
                response = model.send(request, on_text)
            except TransientFailure as failure:
                hopeless += failure.retries is not None  # only these count for the fewer tries that they get
                fewer = most if failure.retries is None else attempt - hopeless + failure.retries
                retries = min(most, fewer)
                if attempt > retries or (failure.retry_after_s or 0.0) > MAX_RETRY_AFTER_S:
                    if failure.unreachable:  # the other models are behind the same address
                        raise Unavailable(f"{failure}, tried {attempt} times") from failure
                    raise
                wait_s = self._wait_s(attempt, failure.retry_after_s)
                if failure.status in RATE_LIMITED:
                    self.pace.slow_down(wait_s)
                rest = range(attempt, retries + 1)
                longest = sum(max(self._step_s(each), failure.retry_after_s or 0.0) for each in rest)
                notify(ModelRetry(str(failure), attempt, round(wait_s, 3), retries, longest))
            else:
                if attempt > 1:
                    tries = f"{attempt - 1} failed {'try' if attempt == 2 else 'tries'}"
                    took = self.clock.monotonic() - first
                    notify(Notice("info", f"the model endpoint answers again after {tries}, {took:.0f} s"))
                return response
            self.clock.sleep(wait_s)

    def _wait_s(self, attempt: int, asked: float | None) -> float:
        """Return an exponential wait, half of it random to spread many processes, but at least the wait that the endpoint asked for."""
        wait = self._step_s(attempt) * (0.5 + self.rng.random() / 2)
        return wait if not asked else max(wait, asked + self.policy.base_s * self.rng.random())

    def _step_s(self, attempt: int) -> float:
        return min(self.policy.base_s * 2.0 ** min(attempt - 1, 30), self.policy.max_wait_s)

    def _give_up_on_long_wait(self, failure: TransientFailure) -> None:
        if failure.retry_after_s is not None and failure.retry_after_s > MAX_RETRY_AFTER_S:
            until = self.clock.now() + timedelta(seconds=failure.retry_after_s)
            message = f"the model endpoint asks to wait until {until:%Y-%m-%d %H:%M:%S} UTC: {failure}"
            raise Unavailable(message, failure.status, until=until) from failure


def _failure_list(names: Sequence[str], failures: Sequence[str]) -> str:
    """Return the models and their failures, each reason once."""
    models: dict[str, list[str]] = {}
    for name, reason in zip(names, failures, strict=True):
        models.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(named)}: {reason}" for reason, named in models.items())
