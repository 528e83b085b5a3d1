"""The rows of the table that report limits: the budgets' answer, and the circuit."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lopen.guardrails.guard import BudgetFacts, OpenCircuit
from lopen.guardrails.resource_limits import check_budget, check_circuits
from lopen.workflow.pauses import BudgetThreshold, Confirmation, Halt
from tests.guardrails.examples import NOW, facts

MESSAGE = "budget module:m: 85% used (85 / 100)"


def test_a_warning_is_told_to_the_model_and_not_announced_again() -> None:
    result = check_budget(facts(budget=BudgetFacts("warning", MESSAGE)))
    assert (result.pause, result.reason, result.announce) == (None, MESSAGE, False)
    assert "by the shortest way" in result.correction


def test_what_a_person_must_confirm_or_extend_blocks_with_the_command() -> None:
    session = facts().session.id
    asks = check_budget(facts(budget=BudgetFacts("confirmation", MESSAGE)))
    assert asks.pause == Confirmation(session, BudgetThreshold(), MESSAGE)
    spent = check_budget(facts(budget=BudgetFacts("pause", MESSAGE, "lopen budget extend module:m")))
    assert spent.pause == Halt("budget", MESSAGE, "lopen budget extend module:m")


@pytest.mark.parametrize(("seconds", "wait_s"), [(42, 42), (0, 0), (-5, 0)])
def test_a_cooldown_is_waited_out_and_the_model_is_told(seconds: float, wait_s: float) -> None:
    cooling = OpenCircuit("s", "rapid_fire", "too fast", NOW + timedelta(seconds=seconds))
    result = check_circuits(facts(circuit=cooling))
    assert (result.wait_s, bool(result.reason)) == (wait_s, wait_s > 0)
    assert ("rapid_fire" in result.correction) == (wait_s > 0)


def test_a_circuit_that_wants_a_person_blocks() -> None:
    waits = OpenCircuit("auth-1", "duplicate_call", "the same call\n5 times", needs_ack=True)
    reason = "the same call 5 times; acknowledge it, then resume (-p TEXT tells the model another way)"
    assert check_circuits(facts(circuit=waits)).pause == Halt("circuit", reason, "lopen circuit ack auth-1")
