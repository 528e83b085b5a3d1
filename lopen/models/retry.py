"""Retry a request, then try the fallback models, then give up. The only importer of `tenacity`.

The first model gets `max_retries` retries per turn, each fallback only `FALLBACK_RETRIES`: after long attempts with
the first model, a fallback either answers soon or the endpoint is down.

See docs/reference/model.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from lopen.core.clock import Clock
from lopen.core.events import Event, ModelFallback, ModelRetry
from lopen.models.messages import (
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

if TYPE_CHECKING:
    from tenacity import RetryCallState

FALLBACK_RETRIES: Final = 2
KEPT_EVERY_S: Final = 1.0  # of an answer that streams in
KEPT_S: Final = 600.0  # how long a fallback that answered is asked first
MAX_RETRY_AFTER_S: Final = 300.0  # for a longer wait the session pauses


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The first wait and the longest one that lopen chooses, in seconds, and the retries per turn."""

    base_s: float = 0.5
    max_wait_s: float = 30.0
    max_retries: int = 8


@dataclass(slots=True)
class TrackedModel:
    """A model, with what the request under way has used: an answer that breaks off after its start is billed.

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
        """Store what the request under way has used, as far as the model said."""
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


def ask(
    model: Model,
    request: Request,
    *,
    fallbacks: Sequence[str] = (),
    substitutes: Substitutes | None = None,
    policy: RetryPolicy,
    clock: Clock,
    rng: random.Random,
    notify: Callable[[Event], None],
    on_text: OnText,
) -> Response:
    """Return the response of the first model that answers.

    A repeated attempt passes its text to `on_text` again; `notify` receives the retry event in between. A rejected
    fallback is skipped, so that its error does not hide the temporary failure of the first model.

    Raises:
        Unavailable: all attempts and fallbacks failed, or the endpoint asked to wait more than five minutes.
        ContextTooLong: the prompt is too long.
        Rejected: the first model rejected the request.
    """
    substitutes = substitutes or Substitutes()
    names = substitutes.order(request.model, fallbacks, clock.monotonic())
    failures: list[str] = []
    for position, name in enumerate(names):
        if position:
            notify(ModelFallback(reason=failures[-1], from_model=names[position - 1], to_model=name))
        retries = policy.max_retries if position == 0 else min(FALLBACK_RETRIES, policy.max_retries)
        attempts = _Attempts(replace(policy, max_retries=retries), clock, rng, notify)
        try:
            response = attempts.ask(model, replace(request, model=name), on_text)
            substitutes.answered(request.model, name, names[0], clock.monotonic())
            return response
        except TransientFailure as failure:
            _give_up_on_long_wait(failure, clock)
            failures.append(str(failure))
        except Rejected as rejection:
            if name == request.model:
                raise
            failures.append(str(rejection))
    raise Unavailable(f"no model answered. {_failure_list(names, failures)}")


def _failure_list(names: Sequence[str], failures: Sequence[str]) -> str:
    """Return the models and their failures, each reason once."""
    models: dict[str, list[str]] = {}
    for name, reason in zip(names, failures, strict=True):
        models.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(named)}: {reason}" for reason, named in models.items())


def _give_up_on_long_wait(failure: TransientFailure, clock: Clock) -> None:
    if failure.retry_after_s is not None and failure.retry_after_s > MAX_RETRY_AFTER_S:
        until = clock.now() + timedelta(seconds=failure.retry_after_s)
        message = f"the model endpoint asks to wait until {until:%Y-%m-%d %H:%M:%S} UTC: {failure}"
        raise Unavailable(message, failure.status, until=until) from failure


@dataclass(frozen=True, slots=True)
class _Attempts:
    """The attempts with one model."""

    policy: RetryPolicy
    clock: Clock
    rng: random.Random
    notify: Callable[[Event], None]

    def ask(self, model: Model, request: Request, on_text: OnText) -> Response:
        """Send without `tenacity` first, which avoids its import; a failure counts as its first attempt."""
        try:
            return model.send(request, on_text)
        except TransientFailure as failure:
            failed = [failure]

        def send() -> Response:
            if failed:
                raise failed.pop()
            return model.send(request, on_text)

        return self._retry(send)

    def _retry(self, send: Callable[[], Response]) -> Response:
        import tenacity

        tries = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_worth_another_try),
            stop=self._stop(),
            wait=self._wait_s,
            before_sleep=self._notify_retry,
            sleep=self.clock.sleep,
            reraise=True,
        )
        return tries(send)

    def _wait_s(self, state: RetryCallState) -> float:
        """Return an exponential wait, half of it random to spread many processes, but at least `retry-after`."""
        step = min(self.policy.base_s * 2.0 ** min(state.attempt_number - 1, 30), self.policy.max_wait_s)
        wait = step * (0.5 + self.rng.random() / 2)
        asked = getattr(_failure(state), "retry_after_s", None)
        return wait if not asked else max(wait, asked + self.policy.base_s * self.rng.random())

    def _notify_retry(self, state: RetryCallState) -> None:
        self.notify(
            ModelRetry(
                reason=str(_failure(state)),
                attempt=state.attempt_number,
                wait_s=round(state.upcoming_sleep, 3),
                retries=state.attempt_number if _hardly_helps(state) else self.policy.max_retries,
            )
        )

    def _stop(self) -> Callable[[RetryCallState], bool]:
        """Return the test for the last attempt: by the policy, or at the second failure where a retry hardly helps."""
        hopeless = 0

        def stop(state: RetryCallState) -> bool:
            nonlocal hopeless
            hopeless += _hardly_helps(state)
            return state.attempt_number > self.policy.max_retries or hopeless > 1

        return stop


def _hardly_helps(state: RetryCallState) -> bool:
    failure = _failure(state)
    return isinstance(failure, TransientFailure) and failure.hardly_transient


def _worth_another_try(error: BaseException) -> bool:
    return isinstance(error, TransientFailure) and (error.retry_after_s or 0.0) <= MAX_RETRY_AFTER_S


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
