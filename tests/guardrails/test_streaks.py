"""Rows of the same mark, bounded by forgetting the key seen longest ago."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.calls import KEY_LENGTH, LIMIT, Streaks, short_key


def test_a_row_grows_while_the_mark_is_the_same() -> None:
    streaks, counts = Streaks(), []
    for mark in "aabaaa":
        streaks, count = streaks.seen("k", mark)
        counts.append(count)
    assert counts == [1, 2, 1, 1, 2, 3]


def test_the_mark_expected_next_may_be_another() -> None:
    streaks, _ = Streaks().seen("k", "0", "1")
    assert streaks.seen("k", "1")[1] == 2
    assert streaks.seen("k", "0")[1] == 1


def test_a_broken_row_starts_at_one_and_others_stay() -> None:
    streaks, _ = Streaks().seen("k", "a")
    streaks, _ = streaks.seen("other", "a")
    assert streaks.without("k").seen("k", "a")[1] == 1
    assert streaks.without("k").seen("other", "a")[1] == 2
    assert streaks.without("nobody") is streaks


def test_the_key_seen_longest_ago_is_forgotten() -> None:
    streaks = Streaks()
    for i in range(LIMIT):
        streaks, _ = streaks.seen(str(i), "a")
    streaks, _ = streaks.seen("0", "a")
    streaks, _ = streaks.seen("one more", "a")
    assert len(streaks.marks) == LIMIT
    assert "1" not in streaks.marks
    assert streaks.seen("0", "a")[1] == 3


def test_a_value_is_never_changed_in_place() -> None:
    first, _ = Streaks().seen("k", "a")
    first.seen("k", "a")
    assert first.seen("k", "a")[1] == 2


@given(st.text(max_size=600), st.text(max_size=600))
def test_keys_are_short_and_differ_where_the_parts_do(a: str, b: str) -> None:
    assert len(short_key(a, b)) <= KEY_LENGTH
    assert (short_key("x", a) == short_key("x", b)) == (a == b)
