"""Ends of turns told apart, quotations and code left alone, and the answers to them."""

from __future__ import annotations

import signal
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.completion import missing
from lopen.guardrails.premature_stops import (
    OBSERVATIONS,
    QUOTED,
    Stop,
    StopKind,
    closing,
    detect_stop,
    nudge,
    own_words,
    sentences,
)
from lopen.workflow.steps import Step
from tests.tables import table

TURN_ENDS = table(__file__, "turn_ends.toml")
STEP = Step.ITERATE_THROUGH_TASKS


def kind(text: str) -> str:
    return detect_stop(text, step=STEP).kind


def test_there_are_enough_examples_on_both_sides() -> None:
    assert len(TURN_ENDS["permission"]) >= 60
    assert len(TURN_ENDS["other"]) >= 60
    assert sum(len(TURN_ENDS[name]) for name in ("permission", "claim", "status")) >= 120


@pytest.mark.parametrize(
    ("expected", "text"), [(k, text) for k, texts in TURN_ENDS.items() for text in texts]
)
def test_the_end_of_a_turn_is_of_its_kind(expected: str, text: str) -> None:
    assert kind(text) == expected


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_saying_nothing(text: str) -> None:
    assert kind(text) == "empty"


FENCES = st.sampled_from(["```\n{}\n```", "~~~\n{}\n~~~", "> {}", "`{}`", '"{}"', "“{}”"])


@given(
    st.sampled_from(
        [
            t
            for t in TURN_ENDS["permission"] + TURN_ENDS["claim"] + TURN_ENDS["status"]
            if not set(t) & set("\n\"'`“”’*")
        ]
    ),
    FENCES,
)
def test_any_of_it_quoted_is_somebody_elses(text: str, fence: str) -> None:
    assert kind(f"The log holds this.\n\n{fence.format(text)}\n\nIt is kept as it was.") == "other"


@given(st.sampled_from(TURN_ENDS["permission"]), st.sampled_from(TURN_ENDS["other"][:25]))
def test_a_quotation_before_it_hides_no_request_for_permission(text: str, quoted: str) -> None:
    if "An open fence" in quoted:  # what follows it is code
        return
    assert kind(f"{quoted}\n\n{text}") == "permission"


def test_the_evidence_is_the_sentence_on_one_line() -> None:
    stop = detect_stop("I wrote it.\nShall I\nproceed \x1b[0m with it?", step=STEP, tool_calls_made=4)
    assert stop.evidence == "Shall I proceed [0m with it?"
    assert stop.tool_calls_made == 4


@pytest.mark.parametrize("step", Step)
def test_only_in_step_one_is_ending_a_turn_no_premature_stop(step: Step) -> None:
    stop = detect_stop("Which database?", step=step)
    assert stop.premature == (step not in (Step.DRAFT_SPECIFICATION, Step.COMPLETE))


@given(st.text(max_size=400))
def test_any_text_is_judged(text: str) -> None:
    assert kind(text) in {"permission", "status", "claim", "empty", "question", "other"}


@pytest.mark.parametrize(
    "piece",
    [
        "`",
        "``` ",
        '"',
        '"a ',
        "'a ",
        "i'll ",
        "**",
        "> ",
        "all ",
        "your ",
        "([",
        "a\n",
        "“",
        "if you ",
    ],
)
def test_a_text_made_to_be_slow_is_judged_at_all(piece: str) -> None:
    """A million characters: a pass that goes over them again and again would take hours, a linear one is done."""
    signal.alarm(60)
    try:
        assert kind(piece * (1_000_000 // len(piece)))
    finally:
        signal.alarm(0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plain", "plain"),
        ('say "this" now', f"say {QUOTED} now"),
        ("say 'this one' now", f"say {QUOTED} now"),
        ("don't say it's the tests' fault", "don't say it's the tests' fault"),
        ("'I'll go, don't wait' he said", f"{QUOTED} he said"),
        ("‘I’ll go’ he said", f"{QUOTED} he said"),
        ("don’t", "don't"),
        ('a 5" pipe and a 6" pipe', 'a 5" pipe and a 6" pipe'),
        ('an open " quote', 'an open " quote'),
        ('open "one\n\nclosed" two', 'open "one\n\nclosed" two'),
        ("a `b` c", f"a {QUOTED} c"),
        ("a ``b ` c`` d", f"a {QUOTED} d"),
        ("a ` b", "a ` b"),
        ("```\nx\n```\nafter", f"{QUOTED}\nafter"),
        ("```\nx\n~~~\nstill", QUOTED),
        ("> quoted\nmine", "mine"),
        ("- item\n\n    its second paragraph", "- item\n\n    its second paragraph"),
        ("a line\n    wrapped", "a line\n    wrapped"),
        ("**bold** and _it_ and *it*", "bold and it and it"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("a\r\nb\rc", "a\nb\nc"),
    ],
)
def test_own_words(text: str, words: str) -> None:
    assert own_words(text) == words


def test_sentences_end_at_marks_blank_lines_and_list_items() -> None:
    assert sentences("One. Two!\nstill two? Three\n\nfour\n- five\n- six") == (
        "One.",
        "Two!",
        "still two?",
        "Three",
        "four",
        "- five",
        "- six",
    )


def test_the_middle_of_an_endless_sentence_is_left_out() -> None:
    said = sentences("start " + "and so on " * 1_000 + "the end?")
    assert len(said) == 1
    assert len(said[0]) < 700
    assert said[0].startswith("start and")
    assert said[0].endswith("the end?")


@pytest.mark.parametrize(
    ("words", "end"),
    [
        ("a", "a"),
        ("a\n\nb", "a\n\nb"),
        ("a\n\nb\n\nc", "b\n\nc"),
        ("a\n\nb\n\n- x\n- y\n\nc", "b\n\n- x\n- y\n\nc"),
        ("a\n\nb\n\nc\n\n- x", "b\n\nc\n\n- x"),
        ("a\n\nb\n\n## head\n\nc", "b\n\n## head\n\nc"),
        ("- x\n- y", "- x\n- y"),
        ("", ""),
    ],
)
def test_the_closing_is_the_last_two_paragraphs_of_prose(words: str, end: str) -> None:
    assert closing(words) == end


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
