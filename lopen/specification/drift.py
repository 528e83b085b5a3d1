"""Drift: the differences between a specification and the planned one (docs/reference/specification-format.md).

The comparison ignores the following:

- Outside code fences: trailing spaces and tabs, even if they make a hard line break, and the number of successive
  blank lines. A line of spaces and tabs is blank.
- Inside a fence, at any depth: the kind of line ends only. The two fence lines are outside; an indented code block
  is not a fence.
- Blank lines at the end, even if a fence is not closed, and a byte order mark.
- The state of a checkbox: `[ ]`, `[x]` or `[X]` after a list marker, at any depth.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lopen.core.hashing import content_hash
from lopen.specification.sections import BYTE_ORDER_MARK, SEPARATOR, Outline, normalise_name
from lopen.specification.spec import ACCEPTANCE_CRITERIA, DEPENDENCIES
from lopen.workflow.steps import Step

PREAMBLE = ""
"""The key of the text before the first heading: the front matter."""
FRONT_MATTER = "front matter"

_LINE_END = re.compile(r"\r\n?")
_BLANK_RUN = re.compile(r"\n{3,}")
_MARKER = r"(?:[-*+]|\d{1,9}[.)])[ \t]"
_TICK = re.compile(rf"^([ \t>]*+(?:{_MARKER}[ \t>]*+)*{_MARKER}[ \t]*+)\[[xX]\](?=[ \t\n]|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Drift:
    """The section addresses that differ from the planned specification, in the order of the text."""

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """True if there is a difference."""
        return bool(self.changed or self.new or self.removed)

    @property
    def named(self) -> Drift:
        """The same for people, with the front matter by its name."""
        kinds = (self.changed, self.new, self.removed)
        return Drift(*(tuple(address or FRONT_MATTER for address in kind) for kind in kinds))

    @property
    def reentry(self) -> Step | None:
        """The earliest step that the session has to repeat, None if no difference requires one."""
        if self._touches(DEPENDENCIES):
            return Step.DETERMINE_DEPENDENCIES
        if self._touches(ACCEPTANCE_CRITERIA):
            return Step.IDENTIFY_COMPONENTS
        return None

    def _touches(self, title: str) -> bool:
        """Return True if a section of that title, or one inside it, is changed, new or removed."""
        differing = (*self.changed, *self.new, *self.removed)
        return any(
            normalise_name(address.split(SEPARATOR)[0]) == normalise_name(title) for address in differing
        )


def compare_hashes(planned: Mapping[str, str], current: Mapping[str, str]) -> Drift:
    """Compare the planned hashes with the current ones (both from `section_hashes`)."""
    return Drift(
        tuple(k for k in current if k in planned and planned[k] != current[k]),
        tuple(k for k in current if k not in planned),
        tuple(k for k in planned if k not in current),
    )


def section_hashes(document: Outline) -> dict[str, str]:
    """Return section address → XxHash128 (hex) of its normalised own text; `PREAMBLE` stands for the front matter.

    Sections with the same address share one hash of all their texts.
    """
    texts: dict[str, str] = {}
    spans = [(PREAMBLE, 0, document.preamble_end)]
    spans += [(s.address, s.start, s.end) for s in document.sections]
    for address, start, end in spans:
        text = _normalised(document.text, start, end, _starting_in(document.fences, start, end))
        texts[address] = f"{texts.get(address, '')}{text}\0"
    return {address: content_hash(text) for address, text in texts.items()}


def spec_hash(document: Outline) -> str:
    """Return one hash for a whole specification, independent of the order of its sections."""
    hashes = section_hashes(document)
    lines = "".join(f"{address}\0{hashes[address]}\n" for address in sorted(hashes))
    return content_hash(lines)


def _starting_in(fences: Sequence[tuple[int, int]], start: int, end: int) -> Sequence[tuple[int, int]]:
    first = bisect_left(fences, start, key=lambda fence: fence[0])
    return fences[first : bisect_left(fences, end, first, key=lambda fence: fence[0])]


def _normalised(text: str, start: int, end: int, fences: Iterable[tuple[int, int]]) -> str:
    if start == 0 and text.startswith(BYTE_ORDER_MARK):
        start = 1
    joined = "".join(_pieces(text, start, end, fences)).lstrip("\n")
    kept = joined.rstrip(" \t\n")
    end_of_last_line = joined.find("\n", len(kept))
    return joined if end_of_last_line < 0 else joined[:end_of_last_line]


def _pieces(text: str, start: int, end: int, fences: Iterable[tuple[int, int]]) -> Iterator[str]:
    for inside, after in fences:
        yield _normalised_text(text[start:inside])
        yield _LINE_END.sub("\n", text[inside:after])
        start = after
    yield _normalised_text(text[start:end])


def _normalised_text(text: str) -> str:
    """Normalise a piece of text without fences that begins at the start of a line."""
    text = _LINE_END.sub("\n", text)
    if " \n" in text or "\t\n" in text or text.endswith((" ", "\t")):
        text = "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    if "[x]" in text or "[X]" in text:
        text = _TICK.sub(r"\1[ ]", text)
    text = _BLANK_RUN.sub("\n\n", text)
    return text[1:] if text.startswith("\n\n") else text
