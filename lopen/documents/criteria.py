"""Read acceptance criteria from a specification's checkbox list, with stable ids (docs/reference/specification-format.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from lopen.documents.blocks import Item, items
from lopen.documents.sections import Diagnostic, Outline, Section

_CHECKBOX = re.compile(r"\[([ xX])\](?:\s+|\Z)(.*)", re.DOTALL)
_NEARLY_A_CHECKBOX = re.compile(r"\[[^\w\[\]]{0,3}\]|\[[xX]\]")
_ID = re.compile(r"\[([A-Za-z0-9][A-Za-z0-9._-]*)\](?::|(?=\s|\Z))\s*(.*)", re.DOTALL)
_OUTSIDE_A_LIST = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s*\[[ xX]?\]|\[ ?\]\s)")


@dataclass(frozen=True, slots=True)
class Criterion:
    """An acceptance criterion with its text on one line, without id and checkbox; `line` counts from 1."""

    id: str
    text: str
    checked: bool
    line: int


@dataclass(slots=True)
class CriteriaFound:
    """The criteria of a section, with its problems (which make it unusable) and warnings."""

    criteria: list[Criterion]
    problems: list[Diagnostic]
    warnings: list[Diagnostic]


def read_criteria(outline: Outline, section: Section, known_ids: Mapping[str, str]) -> CriteriaFound:
    """Read the criteria of a section and its subsections, in order, each with its id.

    An id in the text has priority over the id that `known_ids` has for the text. The others get the numbers `AC-1`,
    `AC-2`, … that are not in use and were not in use before.
    """
    reading = CriteriaFound([], [], [])
    for part in (section, *outline.descendants(section)):
        _read_part(items(outline.text[part.body : part.end]), outline.line_at(part.body), reading)
    reading.criteria = list(_with_ids(reading.criteria, known_ids))
    reading.problems += [
        Diagnostic(c.line, "the criterion has no text") for c in reading.criteria if not c.text
    ]
    reading.warnings += [
        Diagnostic(c.line, "already ticked; lopen ignores ticks and builds it all the same")
        for c in reading.criteria
        if c.checked
    ]
    reading.problems += _duplicates(reading.criteria)
    if not reading.criteria:
        reading.problems.append(Diagnostic(section.line, "no criteria: write at least one `- [ ] …` line"))
    return reading


def _read_part(found: Sequence[Item], first_line: int, reading: CriteriaFound) -> None:
    depth = 0  # of the criterion that deeper plain items belong to; 0: none
    for at, item in enumerate(found):
        line = first_line + item.first
        box = _CHECKBOX.match(item.content) if item.depth else None
        reading.problems += _stray_boxes(item, line)
        if box:
            depth = item.depth
            reading.criteria.append(_criterion(box[2], checked=box[1] != " ", line=line))
        elif item.depth and _NEARLY_A_CHECKBOX.match(item.content):
            reading.problems.append(
                Diagnostic(line, "invalid checkbox: write `- [ ] ` with one space inside and one after it")
            )
        elif item.depth > depth > 0:
            last = reading.criteria[-1]
            reading.criteria[-1] = replace(last, text=f"{last.text} - {_folded(item.content)}")
        elif item.depth:
            depth = 0
            heads_a_list = at + 1 < len(found) and found[at + 1].depth > item.depth
            if not heads_a_list:
                reading.warnings.append(Diagnostic(line, "a list item without a checkbox is not a criterion"))


def _criterion(text: str, *, checked: bool, line: int) -> Criterion:
    own = _ID.match(text)
    return Criterion(own[1] if own else "", _folded(own[2] if own else text), checked, line)


def _stray_boxes(item: Item, line: int) -> Iterator[Diagnostic]:
    """Yield the checkboxes that markdown reads as a paragraph: `-[ ] …`, or without a list marker."""
    for offset, text in enumerate(item.content.split("\n")):
        if (offset or not item.depth) and _OUTSIDE_A_LIST.match(text):
            yield Diagnostic(line + offset, "checkbox outside of a list: write `- [ ] …` on a separate line")


def _with_ids(criteria: Sequence[Criterion], known_ids: Mapping[str, str]) -> Iterator[Criterion]:
    taken = {c.id.casefold() for c in criteria} | {known.casefold() for known in known_ids.values()}
    numbers = (f"AC-{n}" for n in count(1) if f"ac-{n}" not in taken)
    given: set[str] = set()
    for criterion in criteria:
        known = known_ids.get(criterion.text)
        chosen = criterion.id or (known if known and known not in given else next(numbers))
        given.add(chosen)
        yield replace(criterion, id=chosen)


def _duplicates(criteria: Sequence[Criterion]) -> Iterator[Diagnostic]:
    ids: dict[str, int] = {}
    texts: dict[str, int] = {}
    for criterion in criteria:
        first = ids.setdefault(criterion.id.casefold(), criterion.line)
        if first != criterion.line:
            yield Diagnostic(criterion.line, f"duplicate id {criterion.id} (first on line {first})")
        first = texts.setdefault(criterion.text, criterion.line)
        if first != criterion.line and criterion.text:
            yield Diagnostic(criterion.line, f"duplicate criterion (first on line {first})")


def _folded(text: str) -> str:
    return " ".join(text.split())
