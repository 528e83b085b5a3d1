"""Guards over what a step has to show before it is complete."""

from __future__ import annotations

import pytest

from lopen.guardrails.completion import (
    advice,
    check_quality,
    check_scope,
    missing,
    missing_gates,
    rejection,
    required,
)
from lopen.guardrails.guard import Boundary, Claim, GuardVerdict, ScopeFacts
from lopen.workflow.steps import ORDER, Step, number
from tests.guardrails.examples import facts

ALL: dict[str, str | None] = {
    "verify-setup": "pip install -e .",
    "verify-build": "make",
    "verify-tests": "pytest -q",
    "verify-lint": "ruff check",
    "verify-commit": "pre-commit run",
}


@pytest.mark.parametrize(
    ("boundary", "commands", "expected"),
    [
        ("task", ALL, ("verify_tests", "verify_task_completion")),
        ("component", ALL, ("verify_tests", "verify_lint", "verify_component_completion")),
        ("module", ALL, ("verify_build", "verify_tests", "verify_lint", "verify_module_completion")),
        ("task", {**ALL, "verify-tests": None}, ("verify_task_completion",)),
        ("task", {}, ("verify_task_completion",)),
        ("module", {"verify-build": "make"}, ("verify_build", "verify_module_completion")),
        (
            "component",
            {**ALL, "verify-types": "mypy", "verify-docs": None},
            ("verify_tests", "verify_lint", "verify_types", "verify_component_completion"),
        ),
        (
            "module",
            {**ALL, "verify-types": "mypy"},
            ("verify_build", "verify_tests", "verify_lint", "verify_module_completion"),
        ),
    ],
)
def test_required_tools(
    boundary: Boundary, commands: dict[str, str | None], expected: tuple[str, ...]
) -> None:
    assert required(boundary, commands) == expected
    assert missing(boundary, commands, ()) == expected


def test_a_command_cannot_pose_as_the_oracle() -> None:
    assert required("component", {"verify-component-completion": "true"}) == ("verify_component_completion",)


def test_only_what_is_not_fresh_is_missing() -> None:
    assert missing("task", ALL, {"verify_tests"}) == ("verify_task_completion",)
    assert missing("task", ALL, {"verify_tests", "verify_task_completion", "verify_lint"}) == ()


def test_the_refusal_names_the_tools_in_order_and_what_then() -> None:
    said = rejection(Claim("task", "login", ("verify_tests", "verify_task_completion")))
    assert said.startswith("Cannot mark task login as complete: verify_tests, verify_task_completion")
    assert "since the last change" in said
    assert "retry" in said
    assert rejection(Claim("task", "login")) == ""


def test_a_claim_without_its_verifications_blocks() -> None:
    result = check_quality(facts(claim=Claim("component", "api", ("verify_lint",))))
    assert (result.verdict, result.pause_kind) == (GuardVerdict.BLOCK, "guardrail")
    assert result.command == "lopen resume auth-20260301-1"
    assert "verify_lint" in result.correction


def test_a_verified_claim_and_no_claim_pass() -> None:
    assert check_quality(facts(claim=Claim("task", "t1"))).verdict is GuardVerdict.PASS
    assert check_quality(facts()).verdict is GuardVerdict.PASS


@pytest.mark.parametrize(
    ("completed", "original", "verdict"),
    [
        (0, 3, GuardVerdict.PASS),
        (3, 3, GuardVerdict.PASS),
        (5, 3, GuardVerdict.PASS),
        (3, 0, GuardVerdict.BLOCK),
        (3, None, GuardVerdict.BLOCK),
        (None, 3, GuardVerdict.BLOCK),
        (0, -1, GuardVerdict.BLOCK),
        (-1, 3, GuardVerdict.BLOCK),
    ],
)
def test_scope_from_step_four_on(completed: int | None, original: int | None, verdict: GuardVerdict) -> None:
    result = check_scope(facts(step=Step.ITERATE_THROUGH_TASKS, scope=ScopeFacts(completed, original)))
    assert result.verdict is verdict


def test_unfinished_scope_says_that_the_run_goes_on() -> None:
    result = check_scope(facts(step=Step.REPEAT, scope=ScopeFacts(2, 3)))
    assert result.reason == "2 of the 3 acceptance criteria and components are complete: the run continues"


@pytest.mark.parametrize("step", ORDER)
def test_an_unknown_scope_blocks_exactly_from_step_four_on(step: Step) -> None:
    blocked = check_scope(facts(step=step)).verdict is GuardVerdict.BLOCK
    assert blocked == (number(step) >= 4)


def test_the_block_says_what_to_do() -> None:
    result = check_scope(facts(step=Step.SELECT_NEXT_COMPONENT, scope=ScopeFacts(0, 0)))
    assert (result.pause_kind, result.command) == ("guardrail", "lopen plan auth --new")
    assert "record_components" in result.correction


EVERYTHING = {"verify-tests": "pytest", "verify-lint": "ruff check"}


def test_a_repository_with_everything_lacks_nothing() -> None:
    assert missing_gates(EVERYTHING) == ()
    assert advice(()) == ""


def test_what_is_none_or_left_out_is_missing_by_its_name() -> None:
    missing = missing_gates({"verify-tests": None})
    assert [name.split(" (")[0] for name in missing] == ["a test runner", "a linter"]
    assert all(name in advice(missing) for name in missing)
