from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.core.errors import WrongUsage
from lopen.limits.budget import (
    PAUSE,
    BudgetSpec,
    BudgetState,
    Charge,
    answer_room,
    cleared,
    extend_command,
    extended,
    extension,
    opened,
    record,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def module(max_tokens: int = 100, **changes: Any) -> BudgetState:
    spec = BudgetSpec("module:m", "module", max_tokens, confirmation_threshold=0.9)
    return opened(replace(spec, **changes), NOW)


def spend(state: BudgetState, *amounts: int) -> tuple[BudgetState, list[str]]:
    said: list[str] = []
    for amount in amounts:
        state, crossed = record(state, Charge(amount), NOW)
        said += crossed
    return state, said


def test_a_budget_goes_from_active_over_warning_to_paused_and_exhausted() -> None:
    state = module()
    statuses = []
    for amount in (79, 1, 19, 1, 1):
        state, _ = spend(state, amount)
        statuses.append(state.status)
    assert statuses == ["active", "warning", "warning", "paused", "exhausted"]


def test_an_extension_is_a_persons_confirmation_until_the_threshold_is_met_anew() -> None:
    state, _ = spend(module(1_000), 950)
    assert not state.confirmed
    assert extended(state, 50, "nearly there", NOW).confirmed  # 950 of 1,050: still past 0.9
    ample = extended(state, 1_000, "much more", NOW)
    assert not ample.confirmed
    _, said = spend(ample, 900)
    assert said == ["warning", "confirmation"]


def test_a_small_extension_lets_work_go_on_and_repeats_no_warning() -> None:
    state, _ = spend(module(1_000), 1_000)
    state = extended(state, 100, "a little more", NOW)
    assert state.status == "warning"
    state, said = spend(state, 1)
    assert (state.status, said) == ("warning", [])
    state, said = spend(state, 99)
    assert (state.status, said) == ("paused", ["pause"])


@pytest.mark.parametrize(
    ("tokens", "reason"), [(0, "x"), (-5, "x"), (1_000_001, "x"), (10**30, "x"), (5, ""), (5, "  \n")]
)
def test_absurd_extensions_and_those_without_a_reason_are_refused(tokens: int, reason: str) -> None:
    with pytest.raises(WrongUsage):
        extended(module(), tokens, reason, NOW)


def test_what_has_no_limit_cannot_be_extended_and_never_pauses() -> None:
    with pytest.raises(WrongUsage, match="no token limit"):
        extended(module(0), 10, "x", NOW)
    state, said = spend(module(0), 10**12)
    assert (state.status, said) == ("active", [])


def test_warn_enforcement_announces_but_never_pauses() -> None:
    state, said = spend(module(enforcement="warn"), 150)
    assert said == ["warning", "confirmation", "pause"]
    assert state.status == "warning"
    assert answer_room(state, 10_000, 16_000) == 16_000


def test_opening_again_takes_the_present_limit_and_keeps_extensions() -> None:
    state = extended(spend(module(), 90)[0], 50, "x", NOW)
    again = opened(BudgetSpec("module:m", "module", 300, confirmation_threshold=0.9), NOW, state)
    assert (again.max_tokens, again.tokens_used) == (350, 90)


def test_a_reset_budget_counts_from_nothing_with_the_same_limit() -> None:
    state = cleared(spend(module(), 100)[0], NOW)
    assert (state.status, state.tokens_used, state.max_tokens) == ("active", 0, 100)
    assert spend(state, 80)[1] == ["warning"]


@pytest.mark.parametrize(
    ("left", "wanted", "room"),
    [
        (50_000, 16_000, 16_000),
        (12_000, 16_000, 11_000),
        (2_024, 16_000, 1_024),
        (2_023, 16_000, 0),
        (1_500, 500, 500),
    ],
)
def test_an_answer_shrinks_to_what_is_left_but_not_below_its_smallest(
    left: int, wanted: int, room: int
) -> None:
    state = replace(
        module(100_000, alert_threshold=0.99), tokens_used=100_000 - left - 7, reserved=7, confirmed=True
    )
    assert answer_room(state, 1_000, wanted) == room


@given(st.lists(st.one_of(st.integers(0, 60), st.tuples(st.integers(1, 80))), max_size=40))
def test_between_extensions_no_threshold_is_announced_twice(steps: list[int | tuple[int]]) -> None:
    state = module()
    said: list[str] = []
    for step in steps:
        if isinstance(step, tuple):
            state = extended(state, step[0], "x", NOW)
            said = [name for name in said if name in state.announced]
        else:
            state, crossed = record(state, Charge(step), NOW)
            said += crossed
        assert len(said) == len(set(said))
        assert (state.utilization >= 1.0) == state.stopped
        assert set(said) == set(state.announced)


def test_the_extension_that_is_told_lets_work_go_on_and_is_never_refused() -> None:
    for limit in (500, 2_000, 100_000, 1_900_000, 30_000_000):
        for used in (0, limit // 2, limit, limit + 300_000):
            state = replace(module(limit), tokens_used=used)
            tokens = extension(state, 20_000)
            grown = extended(state, tokens, "needed", NOW)
            assert answer_room(grown, 4_000, 16_000) == 16_000, state
    assert extend_command(replace(module(100), tokens_used=2_000_000)) == "lopen budget reset module:m"


def test_what_was_announced_stays_so_where_the_limits_do() -> None:
    spec = BudgetSpec("module:m", "module", 100)
    refused = replace(opened(spec, NOW), tokens_used=70, announced=(PAUSE,))
    assert opened(spec, NOW, refused).status == "paused"
    assert opened(replace(spec, max_tokens=200), NOW, refused).status == "active"
