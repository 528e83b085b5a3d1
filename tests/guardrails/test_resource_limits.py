"""Guards over budgets, iterations and circuits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.guard import BudgetFacts, GuardVerdict, OpenCircuit
from lopen.guardrails.resource_limits import check_budget, check_circuits, level_in, level_of
from tests.guardrails.examples import NOW, facts


def judged(**budget: Any) -> tuple[GuardVerdict, str | None]:
    result = check_budget(facts(budget=BudgetFacts(**budget)))
    return result.verdict, result.pause_kind


@pytest.mark.parametrize(
    ("used", "confirmed", "expected"),
    [
        (0, 0, (GuardVerdict.PASS, None)),
        (799, 0, (GuardVerdict.PASS, None)),
        (800, 0, (GuardVerdict.WARN, None)),
        (899, 0, (GuardVerdict.WARN, None)),
        (900, 0, (GuardVerdict.BLOCK, "confirmation")),
        (999, 0, (GuardVerdict.BLOCK, "confirmation")),
        (900, 90, (GuardVerdict.WARN, None)),
        (999, 90, (GuardVerdict.WARN, None)),
        (1000, 0, (GuardVerdict.BLOCK, "budget")),
        (1000, 90, (GuardVerdict.BLOCK, "budget")),
        (5000, 90, (GuardVerdict.BLOCK, "budget")),
    ],
)
def test_thresholds_of_a_token_budget(
    used: int, confirmed: int, expected: tuple[GuardVerdict, str | None]
) -> None:
    assert judged(tokens_used=used, tokens_max=1000, confirmed_level=confirmed) == expected


@pytest.mark.parametrize("used", [0, 1, 10**12])
def test_no_limit_is_never_reached(used: int) -> None:
    assert judged(tokens_used=used, requests_used=used) == (GuardVerdict.PASS, None)


def test_requests_count_as_tokens_do() -> None:
    assert judged(requests_used=9, requests_max=10) == (GuardVerdict.BLOCK, "confirmation")
    assert judged(tokens_used=1, tokens_max=100, requests_used=8, requests_max=10) == (
        GuardVerdict.WARN,
        None,
    )


def test_the_limit_that_is_used_most_decides() -> None:
    result = check_budget(
        facts(budget=BudgetFacts(tokens_used=85, tokens_max=100, requests_used=10, requests_max=10))
    )
    assert result.pause_kind == "budget"
    assert "10 of 10 requests (100%)" in result.reason
    assert "premium_request_budget" in result.command


def test_the_confirmation_names_subject_level_and_command() -> None:
    result = check_budget(facts(budget=BudgetFacts(tokens_used=95, tokens_max=100)))
    assert (result.confirm, result.level, result.command) == ("budget", 90, "lopen confirm auth-20260301-1")


def test_an_exhausted_budget_names_the_extension() -> None:
    spent = BudgetFacts(tokens_used=100, tokens_max=100, extension=2_000)
    result = check_budget(facts(module="my module", budget=spent))
    assert result.command == "lopen budget extend 'module:my module' --tokens 2000"


def test_thresholds_come_from_the_settings() -> None:
    own: dict[str, Any] = {"tokens_max": 100, "warning": 0.5, "confirmation": 0.6, "pause": 0.7}
    assert judged(tokens_used=49, **own) == (GuardVerdict.PASS, None)
    assert judged(tokens_used=50, **own) == (GuardVerdict.WARN, None)
    assert judged(tokens_used=60, **own) == (GuardVerdict.BLOCK, "confirmation")
    assert judged(tokens_used=70, **own) == (GuardVerdict.BLOCK, "budget")


def test_a_raised_confirmation_threshold_asks_again() -> None:
    assert judged(tokens_used=96, tokens_max=100, confirmation=0.95, confirmed_level=90) == (
        GuardVerdict.BLOCK,
        "confirmation",
    )


def test_switched_off_it_passes() -> None:
    assert judged(tokens_used=100, tokens_max=100, enabled=False) == (GuardVerdict.PASS, None)


@pytest.mark.parametrize("used", [90, 100, 200])
def test_enforcement_warn_says_the_same_and_goes_on(used: int) -> None:
    hard = check_budget(facts(budget=BudgetFacts(tokens_used=used, tokens_max=100)))
    soft = check_budget(facts(budget=BudgetFacts(tokens_used=used, tokens_max=100, enforcement="warn")))
    assert soft.verdict is GuardVerdict.WARN
    assert (soft.reason, soft.correction) == (hard.reason, hard.correction)
    assert not soft.command


@given(st.lists(st.integers(0, 60), max_size=40), st.sampled_from(["hard", "warn"]))
def test_no_threshold_is_announced_twice_also_on_a_jump(spent: list[int], enforcement: Any) -> None:
    """The caller keeps the level that was announced and what a person confirmed."""
    used, announced, confirmed = 0, 0, 0
    told: list[int] = []
    for tokens in spent:
        used += tokens
        budget = BudgetFacts(
            used,
            100,
            confirmed_level=confirmed,
            announced_level=announced,
            enforcement=enforcement,
        )
        result = check_budget(facts(budget=budget))
        level = max([t for t in (80, 90, 100) if used >= t], default=0)
        if result.verdict is not GuardVerdict.PASS and result.announce and result.pause_kind != "budget":
            told.append(level)
            announced = level
        if result.confirm:
            confirmed = result.level
    assert told == sorted(set(told))


def test_levels_are_whole_percentages() -> None:
    assert [level_of(t) for t in (0.8, 0.9, 0.29, 1.0)] == [80, 90, 29, 100]


def test_a_pass_gives_back_the_level_it_spoke_of() -> None:
    spoken = [
        level_in(
            [check_budget(facts(budget=BudgetFacts(tokens_used=used, tokens_max=100, confirmed_level=level)))]
        )
        for used, level in ((50, 0), (85, 0), (95, 0), (95, 90), (100, 90))
    ]
    assert spoken == [0, 80, 90, 90, 100]


def cooling(rule: str, seconds: float) -> OpenCircuit:
    return OpenCircuit(rule, rule, "too fast", NOW + timedelta(seconds=seconds))


def test_no_open_circuit_passes() -> None:
    assert check_circuits(facts()).verdict is GuardVerdict.PASS


def test_a_cooldown_is_waited_out_and_the_model_is_told() -> None:
    result = check_circuits(facts(circuits=(cooling("rapid_fire", 42),)))
    assert result.verdict is GuardVerdict.WARN
    assert result.wait_s == 42
    assert result.action == "waits 42 s, then continues"
    assert "rapid_fire" in result.correction


def test_the_longest_cooldown_counts() -> None:
    result = check_circuits(facts(circuits=(cooling("rapid_fire", 5), cooling("tool_failure", 30))))
    assert result.wait_s == 30
    assert "tool_failure" in result.reason


def test_a_cooldown_that_is_over_passes() -> None:
    assert (
        check_circuits(facts(circuits=(cooling("rapid_fire", 0), cooling("tool_failure", -5)))).verdict
        is GuardVerdict.PASS
    )


def test_a_circuit_that_wants_a_person_blocks_whatever_else_is_cooling() -> None:
    waits = OpenCircuit("auth-1:duplicate_call", "duplicate_call", "the same call\n5 times", needs_ack=True)
    result = check_circuits(facts(circuits=(cooling("rapid_fire", 60), waits)))
    assert (result.verdict, result.pause_kind) == (GuardVerdict.BLOCK, "circuit")
    assert result.command == "lopen circuit ack auth-1:duplicate_call"
    assert result.reason == "circuit duplicate_call is open: the same call 5 times"
