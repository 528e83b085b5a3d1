"""Guards over changes that do not help, and what is done about them."""

from __future__ import annotations

import pytest

from lopen.guardrails.guard import GuardResult
from lopen.guardrails.repeated_failures import Pressure, check, confirmation_at, pressure_at
from lopen.workflow.pauses import Confirmation, FailuresInRow
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Task
from tests.guardrails.examples import facts


def judged(failures: int, confirmed_at: int = 0, threshold: int = 3) -> GuardResult:
    failing = Task("t1", "login", failures=failures, reasons=("red test", "red\ntest again"))
    confirmed = (FailuresInRow("t1", confirmed_at), FailuresInRow("t2", 99))
    return check(facts(failing, failure_threshold=threshold, confirmed=confirmed))


def asked_at(result: GuardResult) -> int:
    """Return the failures up to which a confirmation would hold; 0 where none is asked for."""
    asked = result.pause.reason if isinstance(result.pause, Confirmation) else None
    return asked.failures if isinstance(asked, FailuresInRow) else 0


@pytest.mark.parametrize(
    ("failures", "confirmed_at", "warns", "level"),
    [
        (0, 0, False, 0),
        (1, 0, False, 0),
        (2, 0, True, 0),
        (3, 0, True, 3),
        (3, 3, True, 0),
        (5, 3, True, 5),
        (5, 5, True, 0),
        (7, 5, True, 7),
        (100, 7, True, 99),
    ],
)
def test_gates(failures: int, confirmed_at: int, warns: bool, level: int) -> None:
    result = judged(failures, confirmed_at)
    assert (bool(result.reason), asked_at(result)) == (warns, level)


def test_the_block_names_task_reasons_and_both_ways_on() -> None:
    result = judged(3)
    assert result.reason == "task t1 (login) failed 3 times in a row (red test; red test again)"
    assert isinstance(result.pause, Confirmation)
    assert result.pause.reason == FailuresInRow("t1", 3)
    assert result.pause.command == "lopen confirm auth-20260301-1"
    assert "lopen skip t1" in result.action


def test_the_words_to_the_model_get_sharper() -> None:
    assert "different approach" in judged(2).correction
    assert "must change your strategy" in judged(3).correction
    assert "Do not repeat" in judged(5).correction
    assert "halts" in judged(5, 3).action


def test_a_planning_step_fails_by_itself_and_cannot_be_skipped() -> None:
    result = check(facts(step=Step.BREAK_INTO_TASKS, step_failures=3))
    assert result.reason == "step 5, break into tasks failed 3 times in a row"
    assert "lopen skip" not in result.action
    assert asked_at(result) == 3


@pytest.mark.parametrize(
    ("threshold", "rungs"), [(1, (1, 1, 3)), (2, (1, 2, 4)), (3, (2, 3, 5)), (10, (9, 10, 12))]
)
def test_the_threshold_moves_the_whole_ladder(threshold: int, rungs: tuple[int, int, int]) -> None:
    warning, intervention, halt = rungs
    assert pressure_at(warning, threshold) is (Pressure.WARNING if threshold > 1 else Pressure.INTERVENTION)
    assert pressure_at(intervention, threshold) is Pressure.INTERVENTION
    assert (pressure_at(halt - 1, threshold), pressure_at(halt, threshold)) == (
        Pressure.INTERVENTION,
        Pressure.HALTED,
    )
    assert confirmation_at(threshold, threshold) == threshold
    assert asked_at(judged(threshold, threshold=threshold)) == threshold
