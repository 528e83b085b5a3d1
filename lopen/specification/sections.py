"""Divide a document into sections with heading paths (docs/reference/specification-format.md).

`markdown-it` finds the headings, code fences, lists and front matter. Lines are counted from 0 and end at LF, CRLF or a
lone CR. Offsets count characters of the source: the preamble and the own texts of all sections, joined, are the document.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lopen.core.errors import LopenError

if TYPE_CHECKING:  # an import of 50 ms that most commands do not need
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

SEPARATOR = " > "
BYTE_ORDER_MARK = "\ufeff"
SHOWN_PATHS = 20
MAX_NESTING = 100  # levels of lists and quotes; `markdown-it` drops deeper levels

LINE_END = re.compile(r"\r\n?|\n")
_SEPARATORS = re.compile(r"\s*>\s*")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading at top level: its lines [first, after), its level, its text without markup."""

    first: int
    after: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Item:
    """A list item, or (depth 0) a paragraph outside every list. Block quotes have no items.

    `content` is the source of its own text with newlines and code blocks, without nested items.
    """

    content: str
    first: int
    depth: int


@cache
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).disable(["inline", "text_join"])
    return parser.use(front_matter_plugin)


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _lines(token: Token) -> tuple[int, int]:
    first, after = token.map or (0, 0)
    return first, after


def _headings(tokens: Sequence[Token], environment: dict[str, Any]) -> Iterator[Heading]:
    """Yield the headings outside of lists and quotes; `environment` holds the document's link definitions."""
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0:
            (parsed,) = _inline_parser().parseInline(inline.content, environment)
            title = "".join(_text_of(parsed.children or ()))
            yield Heading(*_lines(opening), int(opening.tag[1:]), " ".join(title.split()))


def _text_of(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the text as a reader sees it, without emphasis, links or code marks."""
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "image":
            yield from _text_of(token.children or ())
        elif token.type != "html_inline":
            yield token.content


def _fence_content(fence: Token) -> tuple[int, int]:
    """Return the lines of the content; its line count shows if the fence is closed, which the token does not."""
    first, after = _lines(fence)
    content = fence.content.count("\n") + (not fence.content.endswith("\n") and fence.content != "")
    return first + 1, min(first + 1 + content, after)


def items(text: str) -> tuple[Item, ...]:
    """Return the list items and the paragraphs outside of lists, in order."""
    return tuple(_items(_block_parser().parse(text)))


def _items(tokens: Sequence[Token]) -> Iterator[Item]:
    started: list[tuple[int, int, list[str]]] = []  # line, depth, parts of the text
    open_parts: list[list[str]] = []
    quotes = 0
    for token in tokens:
        first = _lines(token)[0]
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif quotes:
            continue
        elif token.type == "list_item_open":
            open_parts.append([])
            started.append((first, len(open_parts), open_parts[-1]))
        elif token.type == "list_item_close":
            open_parts.pop()
        elif token.type in ("inline", "fence", "code_block"):
            if open_parts:
                open_parts[-1].append(token.content)
            elif token.type == "inline":
                started.append((first, 0, [token.content]))
    for first, depth, parts in started:
        yield Item("\n".join(parts), first, depth)


class AmbiguousSection(LopenError):
    """A name that matches several sections; the message lists their paths."""


class NoSuchSection(LopenError):
    """A name that matches no section; the hint names those there are."""


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

    `front_matter` is the text between the `---` lines. `fences` are the offsets [start, end) inside code fences;
    `unclosed` are the lines, from 1, of fences that have no end and so hide the rest of the document.
    """

    text: str
    preamble_end: int
    sections: tuple[Section, ...]
    front_matter: str | None
    fences: tuple[tuple[int, int], ...]
    line_starts: tuple[int, ...]
    unclosed: tuple[int, ...] = ()

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
        known = f"the sections: {_listed(self.sections)}" if self.sections else "the document has no sections"
        raise NoSuchSection(f"there is no section {heading!r}", hint=known)

    def get(self, heading: str) -> Section | None:
        """Like `find`, but return None if no section or several match."""
        try:
            return self.find(heading)
        except (AmbiguousSection, NoSuchSection):
            return None

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
    environment: dict[str, Any] = {}
    tokens = _block_parser().parse(text[mark:], environment)
    starts = [mark, *(m.end() for m in LINE_END.finditer(text))]
    lines = len(starts) - text.endswith(("\n", "\r"))

    def at(line: int) -> int:
        return starts[line] if line < len(starts) else len(text)

    headings = list(_headings(tokens, environment))
    fences = [_fence_content(token) for token in tokens if token.type == "fence"]
    ends = [at(h.first) for h in headings[1:]] + [len(text)]
    sections = tuple(
        Section(path, h.title, h.level, h.first + 1, at(h.first), end, at(h.after))
        for h, path, end in zip(headings, _paths(headings), ends, strict=False)
    )
    return Outline(
        text,
        sections[0].start if sections else len(text),
        sections,
        tokens[0].content if tokens and tokens[0].type == "front_matter" else None,
        tuple((at(first), at(after)) for first, after in fences),
        tuple(starts),
        tuple(first for first, after in fences if after >= lines),
    )


def _paths(headings: Iterable[Heading]) -> Iterator[tuple[str, ...]]:
    """Yield the path of each heading: the nearest lower levels before it, without the document's title."""
    above: list[Heading] = []
    for number, heading in enumerate(headings):
        while above and above[-1].level >= heading.level:
            above.pop()
        yield (*(h.title for h in above), heading.title)
        if number or heading.level > 1:
            above.append(heading)


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
