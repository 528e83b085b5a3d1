"""Drift: whether a specification is still the one that was planned (docs/reference/specification-format.md).

What counts, in the cases that could be read two ways:

- Outside code fences trailing blanks never count, not even where they make a hard line break. Blanks are
  spaces and tabs. A line of blanks is a blank line; any number of blank lines counts as one, none as none.
- Inside a fence, at any depth, every character counts; only line ends are made alike. The two fence lines
  themselves are outside. An indented code block is no fence.
- Blank lines at the end never count, even where a fence is left open. A byte order mark does not count.
- A checkbox is `[ ]`, `[x]` or `[X]` behind a list marker, at any depth.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lopen.base.hashing import ContentHasher, content_hash
from lopen.documents.sections import BYTE_ORDER_MARK, SEPARATOR, Outline, folded
from lopen.documents.spec import ACCEPTANCE_CRITERIA, DEPENDENCIES, Specification
from lopen.workflow.steps import Step

PREAMBLE = ""
"""The key of what stands before the first heading: the front matter."""

_LINE_END = re.compile(r"\r\n?")
_BLANK_RUN = re.compile(r"\n{3,}")
_MARKER = r"(?:[-*+]|\d{1,9}[.)])[ \t]"
_TICK = re.compile(rf"^([ \t>]*+(?:{_MARKER}[ \t>]*+)*{_MARKER}[ \t]*+)\[[xX]\](?=[ \t\n]|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Drift:
    """How a specification differs from the planned one: section addresses, in the order of the text."""

    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """There is a difference."""
        return bool(self.changed or self.new or self.removed)

    @property
    def reentry(self) -> Step | None:
        """The step the session goes back to, the earliest that is due; None where nothing forces one."""
        if self._touches(DEPENDENCIES):
            return Step.DETERMINE_DEPENDENCIES
        if self._touches(ACCEPTANCE_CRITERIA):
            return Step.IDENTIFY_COMPONENTS
        return None

    def _touches(self, title: str) -> bool:
        """A section of that title, or one inside it, is changed, new or removed."""
        differing = (*self.changed, *self.new, *self.removed)
        return any(folded(address.split(SEPARATOR)[0]) == folded(title) for address in differing)


def shown(address: str) -> str:
    """A key of `section_hashes` as people read it."""
    return address or "front matter"


def compare(planned: Mapping[str, str], current: Mapping[str, str]) -> Drift:
    """What became of the planned hashes (both from `section_hashes`)."""
    return Drift(
        tuple(k for k in current if k in planned and planned[k] != current[k]),
        tuple(k for k in current if k not in planned),
        tuple(k for k in planned if k not in current),
    )


def section_hashes(spec: Specification) -> dict[str, str]:
    """Section address → XxHash128 (hex) of its own text, normalised; `PREAMBLE` → that of the front matter.

    Sections that share an address share a hash, of all their texts.
    """
    return outline_hashes(spec.outline)


def outline_hashes(cut: Outline) -> dict[str, str]:
    """`section_hashes` of a document that need not be a specification."""
    hashes: dict[str, ContentHasher] = {}
    spans = [(PREAMBLE, 0, cut.preamble_end)]
    spans += [(s.address, s.start, s.end) for s in cut.sections]
    for address, start, end in spans:
        text = _normalised(cut.text, start, end, _starting_in(cut.fences, start, end))
        hashes.setdefault(address, ContentHasher()).add(f"{text}\0")
    return {address: found.hexdigest() for address, found in hashes.items()}


def spec_hash(hashes: Mapping[str, str]) -> str:
    """One hash for a whole specification; the order of its sections does not count."""
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
        yield _outside(text[start:inside])
        yield _LINE_END.sub("\n", text[inside:after])
        start = after
    yield _outside(text[start:end])


def _outside(text: str) -> str:
    """A piece of text without fences, as it counts. It begins at the start of a line."""
    text = _LINE_END.sub("\n", text)
    if " \n" in text or "\t\n" in text or text.endswith((" ", "\t")):
        text = "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    if "[x]" in text or "[X]" in text:
        text = _TICK.sub(r"\1[ ]", text)
    text = _BLANK_RUN.sub("\n\n", text)
    return text[1:] if text.startswith("\n\n") else text
