"""Guards over what a step has to show before it is complete."""

from __future__ import annotations

import pytest

from lopen.guardrails.completion import Boundary, check_quality, check_scope, missing, rejection, required
from lopen.workflow.pauses import Halt
from lopen.workflow.steps import ORDER, Step, number
from lopen.workflow.task_tree import State, Task
from tests.guardrails.examples import facts

ALL: dict[str, str | None] = {
    "verify-setup": "pip install -e .",
    "verify-build": "make",
    "verify-tests": "pytest -q",
    "verify-lint": "ruff check",
    "verify-commit": "pre-commit run",
}
OWN = {
    **ALL,
    "verify-fix": "ruff check --fix",
    "verify-types": "mypy",
    "verify-docs": None,
    "verify-component-completion": "true",
}


@pytest.mark.parametrize(
    ("boundary", "commands", "expected"),
    [
        ("task", ALL, ("verify_lint", "verify_tests", "verify_task_completion")),
        ("task", {**ALL, "verify-tests": None}, ("verify_lint", "verify_task_completion")),
        ("component", OWN, ("verify_lint", "verify_tests", "verify_types", "verify_component_completion")),
        ("module", OWN, ("verify_build", "verify_lint", "verify_tests", "verify_module_completion")),
        ("module", {"verify-build": "make"}, ("verify_build", "verify_module_completion")),
    ],
)
def test_required_tools(
    boundary: Boundary, commands: dict[str, str | None], expected: tuple[str, ...]
) -> None:
    assert required(boundary, commands) == expected
    assert missing(boundary, commands, ()) == expected
    assert missing(boundary, commands, {expected[0]}) == expected[1:]


def test_the_refusal_names_the_tools_in_order_and_what_then() -> None:
    said = rejection("task login", ("verify_tests", "verify_task_completion"))
    assert said.startswith("Cannot mark task login as complete: verify_tests, verify_task_completion")


@pytest.mark.parametrize(
    ("task", "blocks"),
    [
        (Task("t1", "T", state=State.COMPLETE), True),
        (Task("t1", "T", state=State.COMPLETE, commit="c" * 40), False),
        (Task("t1", "T", state=State.FAILED), False),
    ],
)
def test_a_task_is_complete_by_its_commit_alone(task: Task, blocks: bool) -> None:
    assert bool(check_quality(facts(task)).pause) == blocks


@pytest.mark.parametrize("step", ORDER)
def test_a_scope_that_is_unknown_or_shrank_blocks_exactly_from_step_four_on(step: Step) -> None:
    for original in (None, 0, 3):
        result = check_scope(facts(step=step, original_scope=original))
        assert bool(result.pause) == (number(step) >= 4)
    assert not check_scope(facts(step=step, original_scope=2)).reason


def test_the_block_says_what_is_left_of_the_scope_and_what_to_do() -> None:
    result = check_scope(facts(original_scope=3))
    assert isinstance(result.pause, Halt)
    assert "the plan holds 2 criteria and components, of 3 that the module began with" in result.pause.message
    assert result.pause.command == "lopen plan auth --new"
