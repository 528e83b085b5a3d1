"""The rows of the table that report limits: the budgets' answer, and circuits."""

from __future__ import annotations

from datetime import timedelta

from lopen.guardrails.guard import BudgetFacts, GuardVerdict, OpenCircuit
from lopen.guardrails.resource_limits import check_budget, check_circuits
from tests.guardrails.examples import NOW, facts

MESSAGE = "budget module:m: 85% used (85 / 100)"


def test_budgets_without_a_word_pass() -> None:
    assert check_budget(facts()).verdict is GuardVerdict.PASS


def test_a_warning_is_told_to_the_model_and_not_announced_again() -> None:
    result = check_budget(facts(budget=BudgetFacts("warning", MESSAGE)))
    assert (result.verdict, result.reason, result.announce) == (GuardVerdict.WARN, MESSAGE, False)
    assert "by the shortest way" in result.correction


def test_what_a_person_must_confirm_or_extend_blocks_with_the_command() -> None:
    asks = check_budget(facts(budget=BudgetFacts("confirmation", MESSAGE, "lopen confirm s")))
    assert (asks.verdict, asks.pause_kind) == (GuardVerdict.BLOCK, "confirmation")
    assert asks.command == "lopen confirm s"
    spent = check_budget(facts(budget=BudgetFacts("pause", MESSAGE, "lopen budget extend module:m")))
    assert (spent.verdict, spent.pause_kind) == (GuardVerdict.BLOCK, "budget")
    assert spent.command == "lopen budget extend module:m"


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
    assert result.reason == "duplicate_call paused calls: the same call 5 times"
