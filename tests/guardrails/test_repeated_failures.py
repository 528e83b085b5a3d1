"""The guard over attempts that were not accepted."""

from __future__ import annotations

import pytest

from lopen.guardrails.guard import GuardResult
from lopen.guardrails.repeated_failures import check
from lopen.workflow.pauses import Confirmation, FailuresInRow
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Task
from tests.guardrails.examples import facts


def judged(failures: int, threshold: int = 3) -> GuardResult:
    failing = Task("t1", "login", failures=failures, reasons=("red test", "red\ntest again"))
    return check(facts(failing, failure_threshold=threshold))


@pytest.mark.parametrize(
    ("failures", "threshold", "warns", "asks"),
    [
        (1, 3, False, False),
        (2, 3, True, False),
        (3, 3, True, True),
        (1, 1, True, True),
        (8, 10, False, False),
    ],
)
def test_it_warns_before_the_last_attempt_and_asks_after_it(
    failures: int, threshold: int, warns: bool, asks: bool
) -> None:
    result = judged(failures, threshold)
    assert (bool(result.reason), result.pause is not None) == (warns, asks)


def test_the_block_names_task_reasons_and_all_ways_on() -> None:
    result = judged(3)
    assert result.reason == "task t1 (login) was not accepted in 3 attempts: red test; red test again"
    assert isinstance(result.pause, Confirmation)
    assert result.pause.reason == FailuresInRow("t1", 3)
    assert result.pause.command == "lopen confirm auth-20260301-1"
    for way in ("confirm 3 more attempts", "lopen skip t1", "change specs/auth/SPECIFICATION.md"):
        assert way in result.pause.ways
    assert "different approach" in judged(2).correction
    assert "must change your strategy" in result.correction


def test_a_planning_step_fails_by_itself_and_cannot_be_skipped() -> None:
    result = check(facts(step=Step.BREAK_INTO_TASKS, step_failures=3))
    assert result.reason == "step 5, break into tasks was not accepted in 3 attempts"
    assert result.pause is not None
    assert "lopen skip" not in result.action
