"""Divide a document into sections with heading paths (docs/reference/specification-format.md).

Offsets count characters of the source: the preamble and the own texts of all sections, joined, are the document.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from lopen.core.errors import LopenError
from lopen.specification.blocks import Blocks, FrontMatter, Heading, scan

SEPARATOR = " > "
BYTE_ORDER_MARK = "\ufeff"
SHOWN_PATHS = 10
COMPARED_NAMES = 2_000

LINE_END = re.compile(r"\r\n?|\n")
_SEPARATORS = re.compile(r"\s*>\s*")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A problem or warning about a line of a document; `line` counts from 1."""

    line: int
    message: str


class AmbiguousSection(LopenError):
    """A name that matches several sections; the message lists their paths."""


class NoSuchSection(LopenError):
    """A name that matches no section; the hint names the most similar ones."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its text.

    `path` leads from the outermost heading to this one. The document's title (its first heading, if that is an H1)
    is the path of its own section only. `line` counts from 1. The own text is [start, end): the heading and
    everything up to the next heading of any level; [body, end) is the same without the heading.
    """

    path: tuple[str, ...]
    title: str
    level: int
    line: int
    start: int
    end: int
    body: int

    @property
    def address(self) -> str:
        """The path in its written form: `Behaviour > Rounding`."""
        return SEPARATOR.join(self.path)


@dataclass(frozen=True)
class Outline:
    """A document and its sections in order.

    `fences` are the offsets [start, end) inside code fences; `unclosed` names each fence, comment or other HTML that
    has no end and so hides the rest of the document.
    """

    text: str
    preamble_end: int
    sections: tuple[Section, ...]
    front_matter: FrontMatter | None
    fences: tuple[tuple[int, int], ...]
    line_starts: tuple[int, ...]
    unclosed: tuple[Diagnostic, ...] = ()

    @property
    def title(self) -> Section | None:
        """The H1 at the beginning of the document."""
        first = next(iter(self.sections), None)
        return first if first is not None and first.level == 1 else None

    def line_at(self, offset: int) -> int:
        """Return the line of this offset, from 1."""
        return bisect_right(self.line_starts, offset)

    def full_text(self, section: Section) -> str:
        """Return the section's source with its subsections."""
        inside = self.descendants(section)
        return self.text[section.start : inside[-1].end if inside else section.end]

    def descendants(self, section: Section) -> tuple[Section, ...]:
        """Return all sections inside this one, in order."""
        first = bisect_left(self.sections, section.start, key=lambda s: s.start) + 1
        after = first
        while after < len(self.sections) and self.sections[after].level > section.level:
            after += 1
        return self.sections[first:after]

    def children(self, section: Section) -> tuple[Section, ...]:
        """Return the sections directly inside this one, in order."""
        return tuple(_outermost(self.descendants(section)))

    def find(self, heading: str) -> Section:
        """Return the section that `heading` addresses: a path, the end of a path, or a single heading.

        Case and whitespace do not matter. A whole path has priority over the end of a longer one.

        Raises:
            AmbiguousSection: several sections match.
            NoSuchSection: no section matches.
        """
        wanted = normalise_name(heading)
        found = self._by_path.get(wanted) or self._by_ending.get(wanted) or ()
        if len(found) == 1:
            return found[0]
        if found:
            raise AmbiguousSection(
                f"{len(found)} sections match {heading!r}: {_listed(found)}",
                hint="use the whole path; if the paths are equal, rename one of them",
            )
        raise NoSuchSection(f"there is no section {heading!r}", hint=self._nearest(wanted))

    def get(self, heading: str) -> Section | None:
        """Like `find`, but return None if no section or several match."""
        try:
            return self.find(heading)
        except (AmbiguousSection, NoSuchSection):
            return None

    def _nearest(self, wanted: str) -> str:
        known = {**self._by_ending, **self._by_path}
        names = get_close_matches(wanted, list(known)[:COMPARED_NAMES], n=3, cutoff=0.5)
        near = {s.start: s for name in names for s in known[name]}
        if near:
            return f"similar sections: {_listed(near.values())}"
        return f"the sections: {_listed(self.sections)}" if self.sections else "the document has no sections"

    @cached_property
    def _by_path(self) -> dict[str, tuple[Section, ...]]:
        title = self.title
        return _grouped(
            (name, section)
            for section in self.sections
            for name in {
                normalise_name(section.address),
                normalise_name(SEPARATOR.join((title.title, *section.path)) if title else section.address),
            }
        )

    @cached_property
    def _by_ending(self) -> dict[str, tuple[Section, ...]]:
        return _grouped(
            (normalise_name(SEPARATOR.join(section.path[at:])), section)
            for section in self.sections
            for at in range(1, len(section.path))
        )


def parse_outline(text: str) -> Outline:
    """Divide a document into sections. Every text is valid; a byte order mark does not belong to the first line."""
    mark = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    blocks = scan(text[mark:])
    starts = [mark, *(m.end() for m in LINE_END.finditer(text))]

    def at(line: int) -> int:
        return starts[line] if line < len(starts) else len(text)

    headings = blocks.headings
    ends = [at(h.first) for h in headings[1:]] + [len(text)]
    sections = (
        tuple(
            Section(path, h.title, h.level, h.first + 1, at(h.first), end, at(h.after))
            for h, path, end in zip(headings, _paths(headings), ends, strict=True)
        )
        if headings
        else ()
    )
    return Outline(
        text,
        sections[0].start if sections else len(text),
        sections,
        blocks.front_matter,
        tuple((at(first), at(after)) for first, after in blocks.fences),
        tuple(starts),
        tuple(_unclosed(blocks, len(starts) - text.endswith(("\n", "\r")))),
    )


def _unclosed(blocks: Blocks, lines: int) -> Iterator[Diagnostic]:
    for first, after in blocks.fences:
        if after >= lines:
            yield Diagnostic(first, "unclosed code fence: everything after it counts as code; close it")
    for first, end in blocks.unclosed_html:
        yield Diagnostic(first + 1, f"unclosed HTML: everything after it is hidden; close it with {end}")


def _paths(headings: Iterable[Heading]) -> Iterator[tuple[str, ...]]:
    """Yield the path of each heading: the nearest lower levels before it, without the document's title."""
    above: list[Heading] = []
    for number, heading in enumerate(headings):
        while above and above[-1].level >= heading.level:
            above.pop()
        yield (*(h.title for h in above), heading.title)
        if number or heading.level > 1:
            above.append(heading)


def _outermost(sections: Iterable[Section]) -> Iterator[Section]:
    """Yield the sections that are not inside another one."""
    level = 0
    for section in sections:
        if not level or section.level <= level:
            level = section.level
            yield section


def normalise_name(name: str) -> str:
    """Return a name for comparison, independent of Unicode form, case and whitespace."""
    words = " ".join(unicodedata.normalize("NFC", name).split())
    return _SEPARATORS.sub(SEPARATOR, words).strip().casefold()


def _grouped(pairs: Iterable[tuple[str, Section]]) -> dict[str, tuple[Section, ...]]:
    groups: dict[str, list[Section]] = {}
    for name, section in pairs:
        groups.setdefault(name, []).append(section)
    return {name: tuple(found) for name, found in groups.items()}


def _listed(sections: Iterable[Section]) -> str:
    shown = [f"{s.address!r} (line {s.line})" for s in sections]
    more = [f"and {len(shown) - SHOWN_PATHS} more"] if len(shown) > SHOWN_PATHS else []
    return ", ".join([*shown[:SHOWN_PATHS], *more])
