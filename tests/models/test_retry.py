"""Trying again, then another model, then giving up in order."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core import events as e
from lopen.core.events import Event, ModelFallback, ModelRetry, Notice
from lopen.models.messages import (
    ContextTooLong,
    Model,
    ModelError,
    Rejected,
    Response,
    TransientFailure,
    Unavailable,
    Usage,
)
from lopen.models.retry import (
    FALLBACK_RETRIES,
    KEPT_S,
    Bucket,
    Retries,
    RetryPolicy,
    SharedPace,
    Turn,
)
from tests.fakes import FakeClock, ScriptedModel
from tests.models.conftest import ignore, request

ANSWER = Response("id", "m", ({"type": "text", "text": "hello"},), (), "end_turn", Usage())
POLICY = RetryPolicy(base_s=0.5, max_wait_s=30, max_retries=8)


class Waiting:
    """One call of `ask` with everything that can be seen of it."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = FakeClock()
        self.events: list[Event] = []
        self.rng = random.Random(seed)  # noqa: S311  # jitter, not a secret

    def ask(self, model: Model, fallbacks: tuple[str, ...] = (), policy: RetryPolicy = POLICY) -> Response:
        retries = Retries(policy, self.clock, self.rng)
        return retries.ask(model, request(), ignore, self.events.append, fallbacks)


def busy(retry_after_s: float | None = None) -> TransientFailure:
    return TransientFailure("busy", 529, retry_after_s=retry_after_s)


def test_waits_grow_up_to_their_limit_and_each_retry_is_told() -> None:
    waiting = Waiting()
    model = ScriptedModel([*[busy()] * 8, ANSWER])
    assert waiting.ask(model) is ANSWER
    steps = [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert all(step / 2 <= slept <= step for slept, step in zip(waiting.clock.slept, steps, strict=True))
    *told, end = waiting.events
    assert told == [
        ModelRetry("busy", attempt, round(slept, 3), POLICY.max_retries, sum(steps[attempt - 1 :]))
        for attempt, slept in enumerate(waiting.clock.slept, start=1)
    ]
    assert isinstance(end, Notice)
    assert "answers again after 8 failed tries" in end.message


def test_a_wait_for_the_rate_that_another_process_met_is_told() -> None:
    class Refused(SharedPace):
        def change_bucket(self, change: Callable[[Bucket, float], tuple[Bucket, Turn]]) -> Turn:
            return change(bucket, waiting.clock.monotonic())[1]

    waiting, bucket = Waiting(), Bucket(closed_until=7, next_at=7)
    retries = Retries(POLICY, waiting.clock, waiting.rng, pace=Refused())
    retries.ask(ScriptedModel([ANSWER]), request(), ignore, waiting.events.append)
    assert waiting.events == [e.Waiting("the endpoint limits the rate of requests", 7)]


@given(seed=st.integers(0, 2**16), asked=st.floats(0.001, 300))
def test_retry_after_is_never_undercut(seed: int, asked: float) -> None:
    waiting = Waiting(seed)
    waiting.ask(ScriptedModel([busy(asked), ANSWER]))
    assert asked <= waiting.clock.slept[0] <= max(asked + POLICY.base_s, POLICY.base_s)


def test_a_long_retry_after_pauses_at_once_and_says_until_when() -> None:
    waiting = Waiting()
    now = waiting.clock.now()
    model = ScriptedModel([busy(301)])
    with pytest.raises(Unavailable) as caught:
        waiting.ask(model, fallbacks=("other",))
    assert caught.value.until == now + timedelta(seconds=301)
    assert "2026-01-01 00:05:01 UTC" in str(caught.value)
    assert waiting.clock.slept == []
    assert len(model.requests) == 1


def test_after_all_retries_the_fallbacks_get_their_turn_with_fewer() -> None:
    waiting = Waiting()
    tries = POLICY.max_retries + 1
    model = ScriptedModel([*[busy()] * (tries + FALLBACK_RETRIES), ANSWER])
    assert waiting.ask(model, fallbacks=("claude-test", "second", "third")) is ANSWER
    assert [sent.model for sent in model.requests] == ["claude-test"] * tries + ["second"] * 3
    assert [e for e in waiting.events if isinstance(e, ModelFallback)] == [
        ModelFallback("busy", "claude-test", "second")
    ]


def test_when_nothing_answers_every_model_and_its_reason_is_named() -> None:
    model = ScriptedModel([*[busy()] * 9, *[busy()] * 3])
    with pytest.raises(Unavailable, match=r"claude-test, second: busy") as caught:
        Waiting().ask(model, fallbacks=("second",))
    assert caught.value.until is None


def test_an_address_that_refuses_behind_other_failures_is_asked_as_often_as_one_that_refuses_at_once() -> (
    None
):
    refused = TransientFailure("cannot reach it", retries=2, unreachable=True)
    assert Waiting().ask(ScriptedModel([*[busy()] * 3, refused, refused, ANSWER])) is ANSWER
    with pytest.raises(Unavailable, match="tried 6 times"):
        Waiting().ask(ScriptedModel([*[busy()] * 3, *[refused] * 3]))


def test_a_fallback_that_is_rejected_is_passed_over() -> None:
    model = ScriptedModel([busy(), Rejected("no such model", 404), ANSWER])
    once = RetryPolicy(max_retries=0)
    assert Waiting().ask(model, fallbacks=("second", "third"), policy=once) is ANSWER


def test_a_fallback_that_answered_is_asked_first_for_ten_minutes() -> None:
    model = ScriptedModel([busy(), ANSWER, ANSWER, ANSWER])
    waiting = Waiting()
    retries = Retries(RetryPolicy(max_retries=0), waiting.clock, waiting.rng)
    for seconds in (0.0, 1.0, KEPT_S):
        waiting.clock.advance(seconds)
        retries.ask(model, request(), ignore, waiting.events.append, ("second",))
    assert [asked.model for asked in model.requests] == ["claude-test", "second", "second", "claude-test"]


@pytest.mark.parametrize("failure", [ContextTooLong("too long"), Rejected("no key")])
def test_what_no_retry_can_help_passes_through(failure: ModelError) -> None:
    model = ScriptedModel([failure])
    with pytest.raises(type(failure)):
        Waiting().ask(model, fallbacks=("second",))
    assert len(model.requests) == 1


def test_an_answer_from_a_wrong_address_is_asked_for_only_once_more() -> None:
    waiting = Waiting()
    page = TransientFailure("a page", retries=1)
    with pytest.raises(Unavailable):
        waiting.ask(ScriptedModel([page, page]))
    assert waiting.events == [ModelRetry("a page", 1, round(waiting.clock.slept[0], 3), 1, 0.5)]
