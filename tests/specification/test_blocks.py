"""The quick scan sees what a full parse sees, whatever the document."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings

from lopen.specification.blocks import MAX_MARKUP_TITLE, items, scan
from tests.specification.markdown import anything, full_parse


def seen(text: str) -> tuple[list[tuple[int, int, int, str]], list[tuple[int, int]]]:
    found = scan(text)
    return [(h.first, h.after, h.level, h.title) for h in found.headings], list(found.fences)


@settings(max_examples=500, deadline=None)
@example("- a\n\n  ```\n\n# in the fence of the list?\n")
@example("> ```\n\n# after the quote\n")
@example("- <!--\n\n# after the list\n")
@example("<!--\n\n# in a comment\n-->\n# out\n")
@example("# [a] b\n\ntext\n\n- [a]: /u\n")
@example("para\n    code?\n===\n")
@example("```\nopen to the end\n# no\n")
@example("---\nname: x\n# no\n---\n# yes\n")
@example("# a\n   ")
@given(anything)
def test_headings_and_fences_are_those_of_a_full_parse(text: str) -> None:
    reference = full_parse(text)
    assert seen(text) == (reference.headings, reference.fences)


CASES = [
    ("# a\n", ["a"]),
    ("   ### a ###   \n", ["a"]),
    ("    # code\n", []),
    ("\t# code\n", []),
    ("Title\n=====\n\nSub\n---\n", ["Title", "Sub"]),
    ("two\nlines\n===\n", ["two lines"]),
    ("```\n# no\n```\n# yes\n", ["yes"]),
    ("````\n```\n# no\n````\n# yes\n", ["yes"]),
    ("~~~ `x`\n# no\n```\n# no\n~~~~\n# yes\n", ["yes"]),
    ("``` a`b\n# yes\n", ["yes"]),
    ("   ```\n    ```\n# no\n   ```\n# yes\n", ["yes"]),
    ("- # no\n# yes\n", ["yes"]),
    ("1. a\n\n   # no\n\n   b\n   ===\n# yes\n", ["yes"]),
    ("> # no\n# yes\n", ["yes"]),
    ("> a\n===\n", []),
    ("<pre>\n# no\n\n# no\n</pre>\n# yes\n", ["yes"]),
    ("<div>\n# no\n\n# yes\n", ["yes"]),
    ("<script>\n\n# no\n</script>\n# yes\n", ["yes"]),
    ("\\# no\n", []),
    ("#no\n", []),
    ("####### no\n", []),
    ("#\n", [""]),
    (
        "# `code` and *em* &amp; <b>bold</b> [link](u) ![alt *text*](s)\n",
        ["code and em & bold link alt text"],
    ),
    ("# a\\*b\\* \\#\n", ["a*b* #"]),
    ("# [text][ref]\n\n[ref]: /u\n", ["text"]),
    ("# [AUTH-01] kept\n", ["[AUTH-01] kept"]),
    ("# a\r# b\r\n# c", ["a", "b", "c"]),
    ("# a\u2028# b\n", ["a # b"]),
    ("- a\n***\n# yes\n", ["yes"]),
]


@pytest.mark.parametrize(("text", "titles"), CASES)
def test_headings_of(text: str, titles: list[str]) -> None:
    assert [h.title for h in scan(text).headings] == titles


@pytest.mark.parametrize("depth", [5, 30, 59, 61, 200, 2_000])
@pytest.mark.parametrize("marker", ["- a\n", "> "])
def test_a_heading_behind_deep_nesting_is_found(depth: int, marker: str) -> None:
    nested = (
        "".join("  " * n + "- a\n" for n in range(depth)) if marker.startswith("-") else "> " * depth + "a\n"
    )
    text = f"# before\n\n{nested}\n# after\n"
    assert [h.title for h in scan(text).headings] == ["before", "after"]


@pytest.mark.parametrize(
    "text",
    [
        "***\n" * 40_000 + "```\n",
        "a\n\n" + "    code\n\n" * 40_000 + "  ```\n",
        "- a\n* b\n+ c\n" * 10_000 + "<b>\n",
        "```\n" * 40_001,
        "``` `\n" * 20_000,
        "# a\n" * 20_000,
        "-" * 300_000 + "a\n",
        " " * 300_000 + "a\n",
        "`" * 300_000 + "\n",
        "# " + "[" * 100_000 + "\n",
        "# " + "*a **b " * 100 + "\n",
        "]:\n\n" * 20_000,
        "> " * 10_000 + "\n",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_no_document_takes_more_than_linear_time(text: str) -> None:
    start = time.process_time()
    scan(text)
    assert time.process_time() - start < 5


def test_an_overlong_title_is_taken_as_written() -> None:
    title = "*" + "a" * MAX_MARKUP_TITLE + "*"
    assert [h.title for h in scan(f"# {title}\n").headings] == [title]


def test_front_matter_is_no_heading_and_gives_its_lines() -> None:
    found = scan("---\nname: x\nb: 1\n---\n# t\n")
    assert found.front_matter is not None
    assert (found.front_matter.content, found.front_matter.first) == ("name: x\nb: 1", 1)
    assert [h.first for h in found.headings] == [4]


def test_front_matter_stands_at_the_very_beginning_or_nowhere() -> None:
    assert scan("\n---\nname: x\n---\n").front_matter is None


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
