"""The budget of modules that are built together: one limit on money and tokens, exact under many processes."""

from __future__ import annotations

import os

import pytest

from lopen.limits.admin_actions import limit_cost
from lopen.limits.meter import BudgetReached, Meter
from lopen.limits.store import LimitsStore
from lopen.models.messages import Usage
from lopen.settings.schema import Settings
from tests.fakes import FakeClock

ONE_DOLLAR = Settings.model_validate({"budget": {"max_cost_usd": 1.0, "session_tokens": 100_000}})


def quote(answer: int) -> float:
    """Return ten cents for the input, and a dollar for ten thousand tokens of an answer."""
    return 0.10 + answer / 10_000


def opened(store: LimitsStore, clock: FakeClock, session: str) -> Meter:
    meter = Meter(store, ONE_DOLLAR, clock, group="together")
    meter.open(session, f"module of {session}")
    return meter


def test_what_one_was_promised_no_other_gets(store: LimitsStore, clock: FakeClock) -> None:
    first, second = opened(store, clock, "s1"), opened(store, clock, "s2")
    granted = first.reserve(1, 6_000, "", quote)
    assert granted.max_tokens == 6_000
    assert second.reserve(1, 6_000, "", quote).max_tokens == 2_000, "of 30 cents"


def test_what_a_pause_says_was_spent_is_the_modules_own(store: LimitsStore, clock: FakeClock) -> None:
    first, second = opened(store, clock, "s1"), opened(store, clock, "s2")
    first.settle(first.reserve(1, 1_000, "", quote), Usage(100, 100), 0.25)
    second.settle(second.reserve(1, 1_000, "", quote), Usage(100, 100), 0.50)
    assert first.spent_in_words() == "session s1 has cost $0.25 so far"


def test_a_request_waits_for_what_others_leave_of_their_promises(
    store: LimitsStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened(store, clock, "s1"), opened(store, clock, "s2")
    granted = first.reserve(1, 8_000, "", quote)
    monkeypatch.setattr(clock, "sleep", lambda _: first.settle(granted, Usage(100, 100), 0.2))
    assert second.reserve(1, 4_000, "", quote).max_tokens == 4_000


def test_what_all_have_spent_stops_each(store: LimitsStore, clock: FakeClock) -> None:
    first, second = opened(store, clock, "s1"), opened(store, clock, "s2")
    first.settle(first.reserve(1, 1_000, "", quote), Usage(100, 100), 0.95)
    with pytest.raises(BudgetReached, match=r"have cost \$0\.95 of the \$1\.00 they may") as raised:
        second.reserve(1, 1_000, "", quote)
    assert raised.value.command == "lopen resume --all --max-cost 2"
    more = Settings.model_validate({"budget": {"max_cost_usd": 2.0}})
    again = Meter(store, more, clock, group="together")
    again.open("s2", "module of s2")
    assert again.reserve(1, 1_000, "", quote).max_tokens == 1_000


def test_a_refusal_for_the_rate_of_all_lets_every_process_wait_and_then_go_one_after_another(
    store: LimitsStore, clock: FakeClock
) -> None:
    one, two, three = (opened(store, clock, f"s{at}") for at in range(3))
    one.slow_down(16.0)
    turns = [process.turn() for process in (two, three, one)]
    assert [turn.wait_s for turn in turns] == pytest.approx([16.0, 17.0, 18.0])
    clock.advance(16.0)
    assert two.turn(turns[0].at).wait_s == 0.0
    two.slow_down(8.0)
    assert three.turn(turns[1].at).wait_s >= 8.0, (
        "its turn would come before the endpoint takes requests again"
    )
    clock.advance(60.0)
    assert one.turn().wait_s == 0.0


def test_a_promise_that_another_host_made_is_waited_for(
    store: LimitsStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened(store, clock, "s1"), opened(store, clock, "s2")
    with monkeypatch.context() as there:
        there.setattr("lopen.limits.meter.this_process", lambda: "elsewhere/1/1")
        granted = first.reserve(1, 8_000, "", quote)
    second.recover("s2")  # nobody knows here whether that process lives
    monkeypatch.setattr(clock, "sleep", lambda _: first.settle(granted, Usage(100, 100), 0.2))
    assert second.reserve(1, 4_000, "", quote).max_tokens == 4_000


def test_what_a_dead_process_was_promised_the_next_of_the_group_charges(
    store: LimitsStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened(store, clock, "s1"), opened(store, clock, "s2")
    with monkeypatch.context() as there:
        there.setattr("lopen.limits.meter.this_process", lambda: f"{os.uname().nodename}/4194305/1")
        first.reserve(1, 8_000, "", quote)
    second.recover("s2")
    [group] = [state for state in second.states() if state.budget_type == "group"]
    assert (group.cost_usd, group.reserved_usd) == (0.1, 0.0), "the input was sent"


def test_a_lower_limit_of_one_build_does_not_lower_that_of_all_but_a_person_does(
    store: LimitsStore, clock: FakeClock
) -> None:
    opened(store, clock, "s1")
    less = Settings.model_validate({"budget": {"max_cost_usd": 0.5}})
    again = Meter(store, less, clock, group="together")
    again.open("s2", "module of s2")
    assert again.reserve(1, 8_000, "", quote).max_tokens == 8_000
    limit_cost(store, "group:together", 0.5)
    assert [state.spec.max_cost_usd for state in store.budgets("group:together")] == [0.5]
