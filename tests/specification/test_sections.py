"""A document is cut so that nothing of it is lost, and every section can be addressed."""

from __future__ import annotations

import pytest
from hypothesis import given

from lopen.specification.sections import (
    AmbiguousSection,
    NoSuchSection,
    Outline,
    Section,
    items,
    parse_outline,
)
from tests.specification.markdown import anything

TEXT = """---
name: shop
---
# Shop

about

## Behaviour

### Rounding

half up

#### Odd cases

none

### Totals

## Prices

### Rounding

half even
"""


def own_text(document: Outline, section: Section) -> str:
    """Return a section's source without its subsections."""
    return document.text[section.start : section.end]


@given(anything)
def test_preamble_and_sections_put_together_are_the_document(text: str) -> None:
    cut = parse_outline(text)
    assert text[: cut.preamble_end] + "".join(own_text(cut, section) for section in cut.sections) == text


@given(anything)
def test_offsets_and_lines_agree_with_the_text(text: str) -> None:
    cut = parse_outline(text)
    for section in cut.sections:
        assert section.start < section.body <= section.end
        before = text[: section.start].replace("\r\n", "\n").replace("\r", "\n")
        assert section.line == before.count("\n") + 1 == cut.line_at(section.start)
        assert cut.full_text(section).startswith(own_text(cut, section))
    for start, end in cut.fences:
        assert 0 <= start <= end <= len(text)


def test_the_title_is_part_of_no_other_path() -> None:
    assert [s.address for s in parse_outline(TEXT).sections] == [
        "Shop",
        "Behaviour",
        "Behaviour > Rounding",
        "Behaviour > Rounding > Odd cases",
        "Behaviour > Totals",
        "Prices",
        "Prices > Rounding",
    ]


@pytest.mark.parametrize(
    ("heading", "line"),
    [
        ("Behaviour > Rounding", 10),
        ("behaviour>ROUNDING", 10),
        ("  Prices  >  Rounding ", 22),
        ("Totals", 18),
        ("odd   cases", 14),
        ("Rounding > Odd cases", 14),
        ("Shop", 4),
        ("Shop > Prices", 20),
        ("Shop > Prices > Rounding", 22),
    ],
)
def test_a_section_is_found_by_path_or_by_one_unique_heading(heading: str, line: int) -> None:
    assert parse_outline(TEXT).find(heading).line == line


def test_one_heading_of_two_sections_is_ambiguous_and_the_paths_are_listed() -> None:
    with pytest.raises(AmbiguousSection) as caught:
        parse_outline(TEXT).find("rounding")
    assert "'Behaviour > Rounding' (line 10)" in caught.value.message
    assert "'Prices > Rounding' (line 22)" in caught.value.message


def test_an_unknown_section_names_the_nearest() -> None:
    with pytest.raises(NoSuchSection) as caught:
        parse_outline(TEXT).find("Roundings")
    assert "Rounding" in caught.value.hint


def test_full_text_holds_the_subsections_and_own_text_does_not() -> None:
    cut = parse_outline(TEXT)
    rounding = cut.find("Behaviour > Rounding")
    assert own_text(cut, rounding) == "### Rounding\n\nhalf up\n\n"
    assert cut.full_text(rounding) == "### Rounding\n\nhalf up\n\n#### Odd cases\n\nnone\n\n"
    assert cut.full_text(cut.sections[-1]) == "### Rounding\n\nhalf even\n"


def test_a_byte_order_mark_hides_neither_title_nor_front_matter() -> None:
    assert parse_outline("\ufeff# t\n").title is not None
    assert parse_outline("\ufeff# t\n").sections[0].start == 1
    assert parse_outline("\ufeff" + TEXT).front_matter is not None
    assert parse_outline("\ufeff" + TEXT).sections[0].line == 4


TITLES = [
    ("Title\n=====\n\nSub\n---\n", ["Title", "Sub"]),
    ("```\n# no\n```\n- # no\n\n> # no\n\n<pre>\n# no\n</pre>\n# yes\n", ["yes"]),
    (
        "# `code` and *em* &amp; <b>bold</b> [link](u) ![alt *text*](s)\n",
        ["code and em & bold link alt text"],
    ),
    ("# [text][ref]\n\n[ref]: /u\n", ["text"]),
    ("# [AUTH-01] kept\n", ["[AUTH-01] kept"]),
    ("# a\r# b\r\n# c", ["a", "b", "c"]),
    ("#\n", [""]),
]


@pytest.mark.parametrize(("text", "titles"), TITLES)
def test_headings_of(text: str, titles: list[str]) -> None:
    assert [s.title for s in parse_outline(text).sections] == titles


def test_items_are_list_items_with_their_own_text_and_loose_paragraphs() -> None:
    text = (
        "loose\n\n- one\n  goes on\n\n  and on\n  - deeper\n1. two\n   ```\n   code\n   ```\n\n> - quoted\n"
    )
    assert [(i.content, i.first, i.depth) for i in items(text)] == [
        ("loose", 0, 0),
        ("one\ngoes on\nand on", 2, 1),
        ("deeper", 6, 2),
        ("two\ncode\n", 7, 1),
    ]
