"""The table of failures, without a wire."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lopen.llm.failures import MAX_WAIT_S, Refusal, classify, retry_after_s
from lopen.llm.messages import ContextTooLong, Rejected, TransientFailure

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(status=st.integers(300, 999), kind=st.text(max_size=20), message=st.text(max_size=80))
def test_every_refusal_becomes_exactly_one_kind_of_failure(status: int, kind: str, message: str) -> None:
    failure = classify(Refusal(status, kind, message), model="m", now=NOW)
    again = status in (408, 409, 425, 429) or status >= 500
    assert isinstance(failure, TransientFailure) == again
    assert isinstance(failure, (TransientFailure, ContextTooLong, Rejected))
    assert "\n" not in str(failure)


@given(value=st.text(max_size=30) | st.floats().map(str))
def test_any_retry_after_is_a_sensible_wait_or_none(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        wait = retry_after_s({name: value}, NOW)
        assert wait is None or 0 <= wait <= MAX_WAIT_S


def test_a_date_gone_by_means_no_wait() -> None:
    assert retry_after_s({"retry-after": "Wed, 31 Dec 2025 23:00:00 GMT"}, NOW) == 0.0
    assert retry_after_s({"retry-after": "Thu, 01 Jan 2026 00:02:00 -0000"}, NOW) == 120.0


def test_a_long_message_is_cut() -> None:
    assert len(str(classify(Refusal(400, "", "x" * 100_000), model="m", now=NOW))) < 1000
