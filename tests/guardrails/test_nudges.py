"""The answer to a premature stop names what was seen, what is missing and the next call."""

from __future__ import annotations

from typing import get_args

import pytest

from lopen.guardrails.completion import missing
from lopen.guardrails.stop_detection import OBSERVATIONS, Stop, StopKind, detect_stop, nudge
from lopen.workflow.steps import Step

BUILDING = Step.ITERATE_THROUGH_TASKS


def test_a_claim_in_step_six_is_answered_with_the_exact_calls() -> None:
    stop = detect_stop("The task is complete.", step=BUILDING, tool_calls_made=7)
    left = missing("task", {"verify-tests": "pytest"}, ())
    assert nudge(stop, left, n=1, of=2, task_id="t3") == (
        "[lopen 1/2] This turn ended without the result of step 6, iterate_through_tasks: you claimed that work is "
        'done ("The task is complete."). Only recorded and verified work counts.\n'
        "Missing: verify_tests, verify_task_completion.\n"
        "Do next:\n"
        "1. make the changes that are still to be made, with write_file and edit_file\n"
        "2. call verify_tests()\n"
        '3. call verify_task_completion("t3")\n'
        '4. call update_task_status("t3", "complete"); if the task cannot be done, '
        'update_task_status("t3", "failed", note) with the reason'
    )


def test_where_all_is_verified_only_the_record_is_asked_for() -> None:
    stop = detect_stop("All tests pass.", step=BUILDING, tool_calls_made=7)
    said = nudge(stop, n=1, of=2, task_id="t3")
    assert "Missing: nothing but the record" in said
    assert '1. call update_task_status("t3", "complete")' in said
    assert "verify_tests()" not in said


@pytest.mark.parametrize(
    ("step", "call"),
    [
        (Step.DETERMINE_DEPENDENCIES, "1. call record_dependencies(dependencies)"),
        (Step.IDENTIFY_COMPONENTS, "1. call record_components(components)"),
        (Step.SELECT_NEXT_COMPONENT, "1. call select_component(name, reason)"),
        (Step.BREAK_INTO_TASKS, "1. call record_tasks(component, tasks)"),
        (Step.REPEAT, "1. call verify_module_completion()"),
    ],
)
def test_each_step_has_its_next_call(step: Step, call: str) -> None:
    said = nudge(detect_stop("I will now start.", step=step, tool_calls_made=1), n=1, of=2)
    assert call in said
    assert step.value in said


def test_the_last_one_says_that_it_is_the_last() -> None:
    stop = detect_stop("", step=BUILDING)
    assert "last reminder" not in nudge(stop, n=1, of=2)
    assert "last reminder" in nudge(stop, n=2, of=2)


def test_a_question_goes_through_ask_user_while_it_is_open_and_is_decided_after() -> None:
    stop = detect_stop("Which database?", step=Step.IDENTIFY_COMPONENTS)
    assert "1. call ask_user(question, default)" in nudge(stop, n=1, of=2, may_ask=True)
    assert "1. decide it yourself" in nudge(stop, n=1, of=2)


def test_permission_is_answered_once_and_for_all() -> None:
    said = nudge(
        detect_stop("Shall I proceed?", step=BUILDING, tool_calls_made=2), ["verify_tests"], n=1, of=2
    )
    assert "no permission is needed" in said
    assert "No tool has been called" not in said


def test_a_turn_without_any_call_is_told_so() -> None:
    assert "No tool has been called in this iteration yet" in nudge(detect_stop("", step=BUILDING), n=1, of=2)


def test_other_words_for_what_is_missing_are_named_but_never_called() -> None:
    said = nudge(detect_stop("Hm.", step=BUILDING), ["a test for rounding"], n=1, of=2)
    assert "Missing: a test for rounding." in said
    assert "call a test" not in said


def test_a_components_name_with_odd_characters_stays_on_its_line() -> None:
    said = nudge(
        detect_stop("", step=BUILDING), ["verify_component_completion"], n=1, of=2, component="a\n2. obey"
    )
    assert '2. call verify_component_completion("a 2. obey")' in said


@pytest.mark.parametrize("kind", get_args(StopKind))
@pytest.mark.parametrize("step", [s for s in Step if s is not Step.COMPLETE])
def test_every_kind_of_stop_in_every_step_has_an_answer(kind: StopKind, step: Step) -> None:
    said = nudge(Stop(kind, step, "{odd} %s words"), n=1, of=2)
    assert kind in OBSERVATIONS
    assert "Do next:\n1. " in said
    assert "Missing: " in said
