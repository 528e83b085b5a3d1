"""Criteria: what counts as one, and the id that stays with its text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.specification.specs import changed, problems, read

LIST = "- [ ] [SHOP-01] Prices are rounded half up\n- [ ] Totals add up\n"


def with_list(text: str) -> str:
    return changed(LIST, text)


def found(text: str, known: dict[str, str] | None = None) -> list[tuple[str, str]]:
    return [(c.id, c.text) for c in read(with_list(text), known).criteria]


ACCEPTED = [
    ("- [ ] a\n- [ ] b\n", [("AC-1", "a"), ("AC-2", "b")]),
    ("* [ ] a\n+ [ ] b\n1. [ ] c\n2) [ ] d\n", [("AC-1", "a"), ("AC-2", "b"), ("AC-3", "c"), ("AC-4", "d")]),
    ("- [ ] a\n  goes on\nlazily\n\n  and on\n", [("AC-1", "a goes on lazily and on")]),
    ("- [ ] [A-1] a\n- [ ] [B.2]: b\n- [ ] [c_3]\tc\n", [("A-1", "a"), ("B.2", "b"), ("c_3", "c")]),
    ("- [ ] a\n- [ ] [AC-1] b\n- [ ] c\n", [("AC-2", "a"), ("AC-1", "b"), ("AC-3", "c")]),
    ("- [ ] [docs](http://x) a\n", [("AC-1", "[docs](http://x) a")]),
    ("- [ ] [two words] a\n", [("AC-1", "[two words] a")]),
    ("- [ ] a `[ ]` and *b*\n", [("AC-1", "a `[ ]` and *b*")]),
    (
        "- [ ] a\n  - detail\n  - [ ] own\n    - its detail\n",
        [("AC-1", "a - detail"), ("AC-2", "own - its detail")],
    ),
    ("- [ ] prints\n  ```\n  42\n  ```\n", [("AC-1", "prints 42")]),
    ("### Group\n\n- [ ] a\n\n### Other\n\n- [ ] b\n", [("AC-1", "a"), ("AC-2", "b")]),
    ("- **Group**\n  - [ ] a\n  - [ ] b\n", [("AC-1", "a"), ("AC-2", "b")]),
    ("- [ ] a\n\n> - [ ] quoted\n\n```\n- [ ] code\n```\n", [("AC-1", "a")]),
]


@pytest.mark.parametrize(("text", "criteria"), ACCEPTED)
def test_criteria_of(text: str, criteria: list[tuple[str, str]]) -> None:
    assert found(text) == criteria
    assert problems(with_list(text)) == []


REFUSED = [
    ("None yet.\n", ["18: no criteria: write at least one `- [ ] …` line"]),
    ("- [ ] a\n- [] b\n", ["21: invalid checkbox: write `- [ ] ` with one space inside and one after it"]),
    ("- [ ] a\n- [  ] b\n", ["21: invalid checkbox: write `- [ ] ` with one space inside and one after it"]),
    ("- [ ] a\n- [x]b\n", ["21: invalid checkbox: write `- [ ] ` with one space inside and one after it"]),
    ("- [ ] a\n-[ ] b\n", ["21: checkbox outside of a list: write `- [ ] …` on a separate line"]),
    ("- [ ] a\n\n[ ] b\n", ["22: checkbox outside of a list: write `- [ ] …` on a separate line"]),
    ("- [ ]\n- [ ] [A-1]\n", ["20: the criterion has no text", "21: the criterion has no text"]),
    ("- [ ] [A-1] a\n- [ ] [a-1] b\n", ["21: duplicate id a-1 (first on line 20)"]),
    ("- [ ] a\n- [ ] b\n- [ ] a\n", ["22: duplicate criterion (first on line 20)"]),
]


@pytest.mark.parametrize(("text", "wrong"), REFUSED)
def test_problems_of_criteria(text: str, wrong: list[str]) -> None:
    assert problems(with_list(text)) == wrong


def test_a_plain_item_is_no_criterion_and_a_warning_says_so() -> None:
    spec = read(with_list("- [ ] a\n- all times in ms\n"))
    assert spec.problems == ()
    assert [(w.line, w.message) for w in spec.warnings] == [
        (21, "a list item without a checkbox is not a criterion")
    ]


def test_the_number_of_a_criterion_that_is_gone_is_not_given_again() -> None:
    assert found("- [ ] new\n", {"gone": "AC-1"}) == [("AC-2", "new")]


def test_an_id_written_down_that_lopen_gave_to_another_text_is_a_problem() -> None:
    text = with_list("- [ ] a\n- [ ] [AC-1] b\n")
    assert [p.message for p in read(text, {"a": "AC-1"}).problems] == ["duplicate id AC-1 (first on line 20)"]


words = st.text(alphabet="abc", min_size=1, max_size=3)


@given(st.lists(words, unique=True, min_size=1), st.lists(words, unique=True, min_size=1))
def test_ids_survive_every_edit_of_the_list(before: list[str], after: list[str]) -> None:
    first = found("".join(f"- [ ] {t}\n" for t in before))
    known = {text: criterion_id for criterion_id, text in first}
    second = found("".join(f"- [ ] {t}\n" for t in after), known)
    assert [text for _, text in second] == after
    assert len({criterion_id for criterion_id, _ in second}) == len(after)
    for criterion_id, text in second:
        assert known.get(text, criterion_id) == criterion_id
        assert text in known or criterion_id not in known.values()
