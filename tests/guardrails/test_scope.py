"""Scope continuity: known and unfinished goes on, unknown blocks, before step 4 nothing is asked."""

from __future__ import annotations

import pytest

from lopen.guardrails.completion import check_scope, scope_fulfilled
from lopen.guardrails.guard import GuardVerdict, ScopeFacts
from lopen.workflow.steps import ORDER, Step, number
from tests.guardrails.examples import facts


@pytest.mark.parametrize(
    ("completed", "original", "verdict", "done"),
    [
        (0, 3, GuardVerdict.PASS, False),
        (2, 3, GuardVerdict.PASS, False),
        (3, 3, GuardVerdict.PASS, True),
        (5, 3, GuardVerdict.PASS, True),
        (0, 0, GuardVerdict.BLOCK, False),
        (3, 0, GuardVerdict.BLOCK, False),
        (3, None, GuardVerdict.BLOCK, False),
        (None, 3, GuardVerdict.BLOCK, False),
        (None, None, GuardVerdict.BLOCK, False),
        (0, -1, GuardVerdict.BLOCK, False),
        (-1, 3, GuardVerdict.BLOCK, False),
    ],
)
def test_scope_from_step_four_on(
    completed: int | None, original: int | None, verdict: GuardVerdict, done: bool
) -> None:
    result = check_scope(facts(step=Step.ITERATE_THROUGH_TASKS, scope=ScopeFacts(completed, original)))
    assert result.verdict is verdict
    assert scope_fulfilled(completed, original) is done


def test_unfinished_scope_says_that_the_run_goes_on() -> None:
    result = check_scope(facts(step=Step.REPEAT, scope=ScopeFacts(2, 3)))
    assert result.reason == "2 of 3 acceptance criteria are done: the run continues"


@pytest.mark.parametrize("step", ORDER)
def test_an_unknown_scope_blocks_exactly_from_step_four_on(step: Step) -> None:
    blocked = check_scope(facts(step=step)).verdict is GuardVerdict.BLOCK
    assert blocked == (number(step) >= 4)


def test_the_block_says_what_to_do() -> None:
    result = check_scope(facts(step=Step.SELECT_NEXT_COMPONENT, scope=ScopeFacts(0, 0)))
    assert (result.pause_kind, result.command) == ("guardrail", "lopen plan auth --new")
    assert "the original scope is 0" in result.reason
    assert "record_components" in result.correction
