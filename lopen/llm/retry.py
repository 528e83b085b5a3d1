"""Trying again, then another model, then giving up in order. The only importer of `tenacity`.

The first model gets `max_retries` retries a turn, each fallback `FALLBACK_RETRIES`: where the first was
long in vain, a fallback either answers soon or the endpoint is down.

See docs/reference/model.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from lopen.base.clock import Clock
from lopen.base.events import Event, ModelFallback, ModelRetry
from lopen.llm.messages import Model, OnText, Rejected, Request, Response, TransientFailure, Unavailable

if TYPE_CHECKING:
    from tenacity import RetryCallState

FALLBACK_RETRIES: Final = 2
LONGEST_RETRY_AFTER_S: Final = 300.0  # beyond this the session is paused, not kept waiting


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Seconds and counts: the first wait, the longest one of lopen's own choosing, retries a turn."""

    base_s: float = 0.5
    max_wait_s: float = 30.0
    max_retries: int = 8


def ask(
    model: Model,
    request: Request,
    *,
    fallbacks: Sequence[str] = (),
    policy: RetryPolicy,
    clock: Clock,
    rng: random.Random,
    notify: Callable[[Event], None],
    on_text: OnText,
) -> Response:
    """The response of the first model that gives one.

    Raises `Unavailable` when every try and fallback failed or the endpoint asked to wait beyond five
    minutes; `ContextTooLong` and the first model's `Rejected` pass through. A fallback that is rejected
    is passed over: its own mistake must not hide that the first model was only away for a while. A try
    that is repeated gives its text to `on_text` again; `notify` tells of the retry in between.
    """
    names = [request.model, *(name for name in dict.fromkeys(fallbacks) if name != request.model)]
    failures: list[str] = []
    for position, name in enumerate(names):
        if position:
            notify(ModelFallback(reason=failures[-1], from_model=names[position - 1], to_model=name))
        retries = policy.max_retries if position == 0 else min(FALLBACK_RETRIES, policy.max_retries)
        patience = _Patience(replace(policy, max_retries=retries), clock, rng, notify)
        try:
            return patience.ask(model, replace(request, model=name), on_text)
        except TransientFailure as failure:
            _give_up_if_told_to_wait(failure, clock)
            failures.append(str(failure))
        except Rejected as rejection:
            if position == 0:
                raise
            failures.append(str(rejection))
    raise Unavailable(f"no model answered. {_tried(names, failures)}")


def _tried(names: Sequence[str], failures: Sequence[str]) -> str:
    """Who was asked and what came of it, each reason once."""
    asked: dict[str, list[str]] = {}
    for name, why in zip(names, failures, strict=True):
        asked.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(given)}: {why}" for why, given in asked.items())


def _give_up_if_told_to_wait(failure: TransientFailure, clock: Clock) -> None:
    if failure.retry_after_s is not None and failure.retry_after_s > LONGEST_RETRY_AFTER_S:
        until = clock.now() + timedelta(seconds=failure.retry_after_s)
        message = f"the model endpoint asks to come back at {until:%Y-%m-%d %H:%M:%S} UTC: {failure}"
        raise Unavailable(message, failure.status, until=until) from failure


@dataclass(frozen=True, slots=True)
class _Patience:
    """The tries with one model."""

    policy: RetryPolicy
    clock: Clock
    rng: random.Random
    notify: Callable[[Event], None]

    def ask(self, model: Model, request: Request, on_text: OnText) -> Response:
        """The first try is made bare; where it fails, its failure is the first of the tries that are counted."""
        try:
            return model.send(request, on_text)
        except TransientFailure as failure:
            failed = [failure]

        def send() -> Response:
            if failed:
                raise failed.pop()
            return model.send(request, on_text)

        return self._counted(send)

    def _counted(self, send: Callable[[], Response]) -> Response:
        import tenacity

        tries = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_worth_another_try),
            stop=tenacity.stop_after_attempt(self.policy.max_retries + 1),
            wait=self._wait_s,
            before_sleep=self._tell,
            sleep=self.clock.sleep,
            reraise=True,
        )
        return tries(send)

    def _wait_s(self, state: RetryCallState) -> float:
        """Exponential, half of it by chance so that many processes do not come back at once; never before `retry-after`."""
        step = min(self.policy.base_s * 2.0 ** min(state.attempt_number - 1, 30), self.policy.max_wait_s)
        wait = step * (0.5 + self.rng.random() / 2)
        asked = getattr(_failure(state), "retry_after_s", None)
        return wait if not asked else max(wait, asked + self.policy.base_s * self.rng.random())

    def _tell(self, state: RetryCallState) -> None:
        self.notify(
            ModelRetry(
                reason=str(_failure(state)),
                attempt=state.attempt_number,
                wait_s=round(state.upcoming_sleep, 3),
                retries=self.policy.max_retries,
            )
        )


def _worth_another_try(error: BaseException) -> bool:
    return isinstance(error, TransientFailure) and (error.retry_after_s or 0.0) <= LONGEST_RETRY_AFTER_S


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
