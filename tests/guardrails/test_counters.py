"""Sliding windows: half open, bounded, and exact against a plain count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.counters import KeyedWindows, SlidingWindow


def test_an_event_exactly_as_old_as_the_window_is_outside() -> None:
    window = SlidingWindow(10)
    assert [window.record(float(t)) for t in range(12)] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10]


def test_counting_records_nothing_and_an_empty_window_is_zero() -> None:
    window = SlidingWindow(10)
    assert window.count(5) == 0
    window.record(5)
    assert (window.count(5), window.count(14.9), window.count(15)) == (1, 1, 0)


def test_time_that_runs_backwards_is_held() -> None:
    window = SlidingWindow(10)
    window.record(100)
    assert window.record(50) == 2
    assert window.count(109.9) == 2
    assert window.count(110) == 0


def test_a_window_counts_no_further_than_its_cap() -> None:
    window = SlidingWindow(10, cap=3)
    assert [window.record(1) for _ in range(5)] == [1, 2, 3, 3, 3]


@pytest.mark.parametrize(("seconds", "cap"), [(0, 1), (-1, 1), (1, 0)])
def test_senseless_windows_are_refused(seconds: float, cap: int) -> None:
    with pytest.raises(ValueError, match="window"):
        SlidingWindow(seconds, cap=cap)


def test_keys_are_counted_apart_and_the_stalest_is_forgotten() -> None:
    windows: KeyedWindows[str] = KeyedWindows(10, max_keys=2)
    assert (windows.record("a", 0), windows.record("b", 0), windows.record("a", 1)) == (1, 1, 2)
    windows.record("c", 2)
    assert len(windows) == 2
    assert (windows.count("a", 2), windows.count("b", 2), windows.count("c", 2)) == (2, 0, 1)


def test_at_least_one_key_must_fit() -> None:
    with pytest.raises(ValueError, match="key"):
        KeyedWindows[str](10, max_keys=0)


@given(st.lists(st.floats(0, 100), max_size=60).map(sorted), st.floats(0.5, 50))
def test_a_window_agrees_with_a_plain_count(times: list[float], seconds: float) -> None:
    window = SlidingWindow(seconds)
    for i, now in enumerate(times):
        assert window.record(now) == sum(now - t < seconds for t in times[: i + 1])
