"""What counts as a change of the specification, and what it leads to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.specification.drift import (
    PREAMBLE,
    Drift,
    compare_hashes,
    section_hashes,
    spec_hash,
)
from lopen.specification.sections import parse_outline
from lopen.workflow.steps import Step
from tests.specification.markdown import anything
from tests.specification.specs import SOUND, changed

HASHES = section_hashes(parse_outline(SOUND))


def drift(text: str) -> Drift:
    return compare_hashes(HASHES, section_hashes(parse_outline(text)))


INDIFFERENT = {
    "windows line ends": SOUND.replace("\n", "\r\n"),
    "old mac line ends": SOUND.replace("\n", "\r"),
    "trailing blanks": SOUND.replace("\n", "  \t\n"),
    "more blank lines": SOUND.replace("\n\n", "\n\n \n\n"),
    "no end of the last line": SOUND.rstrip("\n"),
    "blank lines at the end": SOUND + "\n  \n\n",
    "a byte order mark": "\ufeff" + SOUND,
    "ticks": SOUND.replace("- [ ]", "- [x]"),
    "one large tick": changed("- [ ] Totals", "- [X] Totals"),
}


@pytest.mark.parametrize("text", INDIFFERENT.values(), ids=INDIFFERENT.keys())
def test_does_not_count(text: str) -> None:
    assert drift(text) == Drift()


CHANGES = [
    (changed("Sells things", "Sold things"), Drift(changed=(PREAMBLE,)), None),
    (changed("A small shop", "A shop"), Drift(changed=("Overview",)), None),
    (changed("Half up", "Half even"), Drift(changed=("Behaviour > Rounding",)), None),
    (changed("### Rounding", "### Rounds"), Drift(new=("Behaviour > Rounds",), removed=("Behaviour > Rounding",)), None),
    (changed("Totals add", "Sums add"), Drift(changed=("Acceptance Criteria",)), Step.IDENTIFY_COMPONENTS),
    (changed("None.", "A till."), Drift(changed=("Dependencies",)), Step.DETERMINE_DEPENDENCIES),
    (changed("None.", "None.\n\n### Tills"), Drift(new=("Dependencies > Tills",)), Step.DETERMINE_DEPENDENCIES),
    (changed("add up\n", "add up\n\n### Later\n"), Drift(new=("Acceptance Criteria > Later",)), Step.IDENTIFY_COMPONENTS),
    (changed("## Dependencies\n\nNone.\n", ""), Drift(removed=("Dependencies",)), Step.DETERMINE_DEPENDENCIES),
    (changed("pytest -q", "pytest"), Drift(changed=("Skills & Hooks",)), None),
    (changed("## Overview", "## Dependencies and more\n\nx\n\n## Overview"), Drift(new=("Dependencies and more",)), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found", "reentry"), CHANGES)
def test_a_change_is_found_and_leads_where_it_must(text: str, found: Drift, reentry: Step | None) -> None:
    assert drift(text) == found
    assert found.any
    assert found.reentry is reentry


def test_sections_below_and_case_count_with_their_h2() -> None:
    assert Drift(removed=("ACCEPTANCE criteria > Later > More",)).reentry is Step.IDENTIFY_COMPONENTS
    assert Drift(new=("dependencies > Setup",)).reentry is Step.DETERMINE_DEPENDENCIES
    assert Drift(changed=("Behaviour > Dependencies",)).reentry is None


def test_moving_sections_about_is_no_drift() -> None:
    overview = "## Overview\n\nA small shop.\n\n"
    moved = changed(overview, "") + "\n" + overview
    assert drift(moved) == Drift()
    assert spec_hash(parse_outline(moved)) == spec_hash(parse_outline(SOUND))


def test_sections_of_one_address_hide_no_change_from_each_other() -> None:
    one = section_hashes(parse_outline("# t\n## a\nx\n## a\ny\n"))
    other = section_hashes(parse_outline("# t\n## a\nz\n## a\ny\n"))
    assert compare_hashes(one, other) == Drift(changed=("a",))


def alike(one: str, other: str) -> bool:
    """Whether nothing that counts differs."""
    return section_hashes(parse_outline(one)) == section_hashes(parse_outline(other))


SAME = [
    ("a\\\nb", "a\\  \nb"),
    ("a  \nb", "a\nb"),
    ("\n\n a\n\n\n\nb\n\n", " a\n\nb"),
    ("```py  \na\n```  \nb", "```py\na\n```\nb"),
    ("```\r\na \r\n```", "```\na \n```"),
    ("```\na\n", "```\na"),
    ("- [x] a\n  1. [X] b\n> - [x] c\n- - [x] d", "- [ ] a\n  1. [ ] b\n> - [ ] c\n- - [ ] d"),
    ("    code  \n\n\n    code", "    code\n\n    code"),
    ("", " \t\n\r\n"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_alike(one: str, other: str) -> None:
    assert alike(one, other)


DIFFERENT = [
    ("a\n\nb", "a\nb"),
    ("a b", "a  b"),
    ("a", " a"),
    ("- [x]a", "- [ ]a"),
    ("- > [x] a", "- > [ ] a"),
    ("```\na \n```", "```\na\n```"),
    ("```\n\n\na\n```", "```\n\na\n```"),
    ("```\n- [x] a\n```", "```\n- [ ] a\n```"),
    ("````\n```\na \n````", "````\n```\na\n````"),
    ("- x\n  ```\n  a \n  ```", "- x\n  ```\n  a\n  ```"),
    ("> ```\n> a \n> ```", "> ```\n> a\n> ```"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_not_alike(one: str, other: str) -> None:
    assert not alike(one, other)


@given(anything)
def test_a_section_hashes_the_same_alone_as_in_its_document(text: str) -> None:
    cut = parse_outline(text)
    for section in cut.sections:
        alone = section_hashes(parse_outline(cut.text[section.start : section.end]))
        shared = section.title == PREAMBLE or [s.address for s in cut.sections].count(section.address) > 1
        if not shared:
            # Its title may read differently: a link in it may be defined in another section.
            assert section_hashes(cut)[section.address] == list(alone.values())[1]


code = st.lists(st.text(alphabet="a `~\t[x]-#", max_size=6), max_size=4).map("\n".join)


@given(code, code)
def test_inside_a_fence_every_character_counts(one: str, other: str) -> None:
    fence = "`" * 8
    assert alike(f"{fence}\n{one}\n{fence}", f"{fence}\n{other}\n{fence}") == (one == other)
