"""Ends of turns told apart, quotations and code left alone, and the answers to them."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.completion import missing
from lopen.guardrails.premature_stops import QUOTED, Stop, detect_stop, nudge, sentences
from lopen.workflow.steps import Step
from tests.tables import table

TURN_ENDS = table(__file__, "turn_ends.toml")
BUILDING = Step.ITERATE_THROUGH_TASKS


def kind(text: str) -> str:
    return detect_stop(text, step=BUILDING).kind


@pytest.mark.parametrize("expected", TURN_ENDS)
def test_the_end_of_a_turn_is_of_its_kind(expected: str) -> None:
    assert {text: kind(text) for text in TURN_ENDS[expected]} == dict.fromkeys(TURN_ENDS[expected], expected)


def test_saying_nothing() -> None:
    assert kind(" \n\t\n") == "empty"


FENCES = st.sampled_from(["```\n{}\n```", "~~~\n{}\n~~~", "> {}", "`{}`", '"{}"', "“{}”"])
PLAIN = [
    text
    for kind in ("permission", "claim", "status")
    for text in TURN_ENDS[kind]
    if not set(text) & set("\n\"'`“”’*")
]


@given(st.sampled_from(PLAIN), FENCES)
def test_any_of_it_quoted_is_somebody_elses(text: str, fence: str) -> None:
    assert kind(f"The log holds this.\n\n{fence.format(text)}\n\nIt is kept as it was.") == "other"


def test_the_evidence_is_the_sentence_on_one_line() -> None:
    stop = detect_stop("I wrote it.\nShall I\nproceed \x1b[0m with it?", step=BUILDING, tool_calls_made=4)
    assert stop.evidence == "I wrote it. Shall I proceed [0m with it?".partition(". ")[2]
    assert stop.tool_calls_made == 4


@given(st.text(max_size=400))
def test_any_text_has_a_kind(text: str) -> None:
    assert kind(text)


@pytest.mark.parametrize(
    "piece", ["`", "``` ", '"a ', "'a ", "i'll ", "> ", "all ", "([", "a\n", "“", "if you "]
)
def test_a_text_made_to_be_slow_is_read_at_all(piece: str) -> None:
    """A million characters: a pass that goes over them again and again would take hours, a linear one is done."""
    signal.alarm(60)
    try:
        assert kind(piece * (1_000_000 // len(piece)))
    finally:
        signal.alarm(0)


def test_sentences_are_the_models_own_words() -> None:
    assert sentences('One. Two!\nstill two? Say "this" now\n\nfour\n- five\n```\nx\n```\nit’s **six**') == (
        "One.",
        "Two!",
        "still two?",
        f"Say {QUOTED} now",
        "four",
        f"- five {QUOTED} it's six",
    )


def test_a_claim_in_step_six_is_answered_with_the_exact_calls() -> None:
    stop = detect_stop("The task is complete.", step=BUILDING, tool_calls_made=7)
    left = missing("task", {"verify-tests": "pytest"}, ())
    assert nudge(stop, left, n=1, of=2, task_id="t3") == (
        "[lopen 1/2] This turn ended without the result of step 6, iterate_through_tasks: you claimed that work is "
        'done ("The task is complete."). Only recorded and verified work counts.\n'
        'Make the changes that are still to be made. Call next: verify_tests(), verify_task_completion("t3"), '
        'update_task_status("t3", "complete"); if the task cannot be done, update_task_status("t3", "failed", note).'
    )


def test_where_all_is_verified_only_the_record_is_asked_for() -> None:
    said = nudge(Stop("claim", BUILDING, "All tests pass."), n=1, of=2, task_id="t3")
    assert 'Call next: update_task_status("t3", "complete")' in said
    assert "verify_tests" not in said


def test_the_last_one_says_that_it_is_the_last_and_names_the_steps_call() -> None:
    stop = Stop("empty", Step.BREAK_INTO_TASKS)
    assert "last reminder" not in nudge(stop, n=1, of=2)
    last = nudge(stop, n=2, of=2)
    assert "No tool has been called in this iteration yet" in last
    assert "Call next: record_tasks(component, tasks)" in last
    assert "last reminder" in last


def test_a_question_goes_through_ask_user_while_it_is_open_and_is_decided_after() -> None:
    stop = detect_stop("Which database?", step=Step.IDENTIFY_COMPONENTS)
    assert "Call ask_user(question, default)" in nudge(stop, n=1, of=2, may_ask=True)
    assert "Decide it yourself" in nudge(stop, n=1, of=2)
