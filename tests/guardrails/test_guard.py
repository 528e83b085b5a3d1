"""Foreign text in lopen's sentences, and commands a person can paste."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.guard import one_line
from lopen.limits.budget import BudgetSpec, BudgetState, extend_command


@given(st.text(max_size=300), st.integers(2, 50))
def test_any_text_becomes_one_short_printable_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert not any(c in line for c in "\x1b\r\x85\u2028\u202e\u200b")


@given(
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=30)
)
def test_a_command_survives_the_shell_whatever_the_name(name: str) -> None:
    state = BudgetState(BudgetSpec(f"module:{name}", "module", 1_000), tokens_used=1_000)
    assert shlex.split(extend_command(state))[3] == f"module:{name}"
