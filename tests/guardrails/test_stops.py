"""Ends of turns told apart; quotations and code left alone."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.guardrails.stop_detection import detect_stop
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


FENCES = st.sampled_from(["```\n{}\n```", "~~~\n{}\n~~~", "> {}", "`{}`", '"{}"', "“{}”", '"""\n{}\n"""'])


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
        "<pre>",
        "<q><pre>",
        '"""',
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
