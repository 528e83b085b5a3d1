"""Own words without quotations and code, sentence by sentence."""

from __future__ import annotations

import pytest

from lopen.guardrails.stop_phrases import QUOTED, closing, own_words, sentences


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
        ("a\n\n    code\n    code\n\nb", f"a\n\n{QUOTED}\n{QUOTED}\n\nb"),
        ("- item\n\n    its second paragraph", "- item\n\n    its second paragraph"),
        ("a line\n    wrapped", "a line\n    wrapped"),
        ("**bold** and _it_ and *it*", "bold and it and it"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("<code>x</code> y", f"{QUOTED} y"),
        ("<CODE class='a'>x</CODE> y", f"{QUOTED} y"),
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
