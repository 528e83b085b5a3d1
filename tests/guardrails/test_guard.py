"""Foreign text in lopen's sentences, and commands a person can paste."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.guard import listing, one_line, times
from lopen.limits.budget import BudgetSpec, BudgetState, extend_command


@given(st.text(max_size=300), st.integers(2, 50))
def test_any_text_becomes_one_short_printable_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert not any(c in line for c in "\x1b\r\x85\u2028\u202e\u200b")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("as it is", "as it is"),
        ("  a \n b\t", "a b"),
        ("\x1b]0;title\x07x", "]0;title x"),
        ("a\u202eb", "a b"),
        ("x" * 11, "x" * 9 + "…"),
        ("x" * 5_000, "x" * 9 + "…"),
        ("naïve…", "naïve…"),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text, 10) == line


def test_counts_and_listings_read_as_prose() -> None:
    assert [times(n) for n in (1, 2, 3)] == ["once", "twice", "3 times"]
    assert listing(("a", "b")) == "a, b"
    assert listing(tuple("abcdefg")) == "a, b, c, d, e and 2 more"


@given(
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=30)
)
def test_a_command_survives_the_shell_whatever_the_name(name: str) -> None:
    state = BudgetState(BudgetSpec(f"module:{name}", "module", 1_000), tokens_used=1_000)
    assert shlex.split(extend_command(state))[3] == f"module:{name}"
