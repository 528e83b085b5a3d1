"""The block structure of a markdown text according to markdown-it. `elements` renders it.

`scan` finds the top-level headings, the code fences and the front matter of a whole document. Its additional block
rules skip the plain parts of a document where the outcome is certain. They apply at top level only and leave
everything else to markdown-it's own rules. They record their results in a `FastBlocks` instead of tokens, whose
creation is slow; `tests/specification/test_blocks.py` compares them with a full parse. `items` parses a short text (one
section) fully. Lines are counted from 0 and end at LF, CRLF or a lone CR.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # an import of 50 ms that most commands do not need
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

# Characters; the markup of a longer title stays, because nested brackets cost quadratic time
MAX_MARKUP_TITLE = 300

# HTML blocks that only their own end marker closes (CommonMark 0.31, HTML blocks 1 to 3 and 5)
_HTML_OPENING = re.compile(r"[ ]{0,3}<(!--|\?|!\[CDATA\[|script|pre|style|textarea)", re.IGNORECASE)
_HTML_ENDS = {"!--": "-->", "?": "?>", "![cdata[": "]]>"}
_MARKUP = re.compile(r"[\\`*_\[\]<>&!\n]")


@dataclass(frozen=True, slots=True, order=True)
class Heading:
    """A heading at top level: its lines [first, after), its level, its text without markup."""

    first: int
    after: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The text between the `---` lines and its first line."""

    content: str
    first: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """The result of `scan`, in the order of the text."""

    headings: tuple[Heading, ...]
    fences: tuple[tuple[int, int], ...]  # the lines [first, after) between a fence's markers, at any depth
    front_matter: FrontMatter | None
    unclosed_html: tuple[tuple[int, str], ...] = ()  # first line and missing end of HTML that runs to the end


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

    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING + 8}).disable(["inline", "text_join"])
    install(parser)
    return parser.use(front_matter_plugin)


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def scan(text: str) -> Blocks:
    """Return the headings, fences and front matter of a document. Text in a list, quote, HTML or code is not a heading."""
    found = FastBlocks()
    environment = found.environment()
    tokens = _block_parser().parse(text, environment)
    headings = [
        Heading(first, first + 1, level, _plain_text(source, environment))
        for first, level, source in found.headings
    ]
    headings += [
        Heading(*_lines(token), int(token.tag[1:]), _plain_text(tokens[at + 1].content, environment))
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]
    fences = found.fences + [_fence_content(token) for token in tokens if token.type == "fence"]
    front = next((t for t in tokens[:1] if t.type == "front_matter"), None)
    return Blocks(
        tuple(sorted(headings)),
        tuple(sorted(fences)),
        FrontMatter(front.content, 1) if front else None,
        tuple(_unclosed_html(tokens)),
    )


def _unclosed_html(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """Yield HTML blocks without their end marker; everything after such a block counts as HTML."""
    for token in tokens:
        opening = _HTML_OPENING.match(token.content) if token.type == "html_block" else None
        if opening:
            name = opening[1].lower()
            end = _HTML_ENDS.get(name, f"</{name}>")
            if end not in token.content.lower():
                yield _lines(token)[0], end


def items(text: str) -> tuple[Item, ...]:
    """Return the list items and the paragraphs outside of lists, in order."""
    return tuple(_items(_block_parser().parse(text)))


def _lines(token: Token) -> tuple[int, int]:
    first, after = token.map or (0, 0)
    return first, after


def _fence_content(fence: Token) -> tuple[int, int]:
    """Return the lines of the content; its line count shows if the fence is closed, which the token does not."""
    first, after = _lines(fence)
    content = fence.content.count("\n") + (not fence.content.endswith("\n") and fence.content != "")
    return first + 1, min(first + 1 + content, after)


def _plain_text(source: str, environment: dict[str, Any]) -> str:
    """Return a heading's text on one line as a reader sees it, without emphasis, links or code marks."""
    if len(source) <= MAX_MARKUP_TITLE and _MARKUP.search(source):
        tokens: list[Token] = []
        parser = _inline_parser()
        parser.inline.parse(source, parser, environment, tokens)
        source = "".join(_text_of(tokens))
    return " ".join(source.split())


def _text_of(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "image":
            yield from _text_of(token.children or ())
        elif token.type != "html_inline":
            yield token.content


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


MAX_NESTING = 120
"""Nesting level from which lists and quotes count as plain paragraphs. Beyond its own limit markdown-it would
drop the rest of the document with all headings."""

# A line is inert if at top level it is not a heading, a setext underline or the start of HTML, and does not contain
# a fence's marker or the "]:" of a link definition. Its meaning inside a list or a quote does not matter: those end
# with the chunk.
_INERT = r"""
    (?! [ ]{0,3} (?: [#=<] | -+[ \t]*(?:\n|\Z) ) )
    [ \t]*+ (?=[^\n])
    (?: [^\n`~\]]++ | `(?!``) | ~(?!~~) | \](?!:) )++
    (?: \n | \Z )
"""
_BLANK = r"[ \t]*+\n"
_PIECE = rf"(?: {_INERT} )++ (?: (?: {_BLANK} )++ | \Z | (?= \#{{1,6}}(?:[ \t\n]|\Z) ) )"

# A chunk begins in the first column and continues over indented pieces (of a list, for example). It ends where every
# container ends: before text in the first column after a blank line, before an ATX heading in the first column, or at
# the end.
_CHUNKS = re.compile(
    rf"(?: (?![ \t]) {_PIECE} (?: (?=[ \t]) {_PIECE} )*+ (?![ \t]) )++",
    re.VERBOSE,
)
_FENCE = re.compile(r"(`{3,}+)(?=[^`\n]*(?:\n|\Z))|(~{3,}+)")
_HEADING = re.compile(r"(#{1,6})([ \t][^\n]*)?(?:\n|\Z)")


@dataclass(slots=True)
class FastBlocks:
    """The results of the additional rules. Lines are [first, after); a heading is (first, level, its source)."""

    headings: list[tuple[int, int, str]] = field(default_factory=list)
    fences: list[tuple[int, int]] = field(default_factory=list)  # the lines between the markers
    after: int = 0  # the line after the latest of them

    @staticmethod
    def of(environment: Mapping[str, Any]) -> FastBlocks | None:
        """Return the instance in the parser's environment; without one the rules do nothing."""
        found = environment.get("lopen.found")
        return found if isinstance(found, FastBlocks) else None

    def environment(self) -> dict[str, Any]:
        """Return a parser environment that contains this instance."""
        return {"lopen.found": self}


def install(parser: MarkdownIt) -> None:
    """Add the rules before markdown-it's own."""
    ruler = parser.block.ruler
    for name, rule in (
        ("top_level_heading", _heading),
        ("inert", _inert),
        ("top_level_fence", _fence),
        ("too_deep", _too_deep),
    ):
        ruler.before("table", name, rule)


def _heading(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read an ATX heading outside of lists and quotes."""
    if silent or state.level or state.sCount[start] > 3:
        return False
    match = _HEADING.match(state.src, state.bMarks[start] + state.tShift[start])
    found = FastBlocks.of(state.env)
    if match is None or found is None:
        return False
    source = (match[2] or "").rstrip(" \t")
    open_end = source.rstrip("#")
    closed = open_end != source and open_end.endswith((" ", "\t"))
    found.headings.append((start, len(match[1]), (open_end if closed else source).strip(" \t")))
    state.line = found.after = start + 1
    return True


def _inert(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Skip chunks of inert lines. The match runs only where a chunk can begin, so it visits no line twice."""
    if silent or state.level or state.tShift[start]:
        return False
    found = FastBlocks.of(state.env)
    if found is None or not (found.after == start or state.isEmpty(start - 1)):
        return False
    chunks = _CHUNKS.match(state.src, state.bMarks[start])
    if chunks is None:
        return False
    state.line = bisect_left(state.bMarks, chunks.end(), start)
    return True


def _fence(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a code fence outside of lists and quotes; search for its end instead of visiting every line."""
    if silent or state.level or state.sCount[start] > 3:
        return False
    opening = _FENCE.match(state.src, state.bMarks[start] + state.tShift[start])
    found = FastBlocks.of(state.env)
    if opening is None or found is None:
        return False
    closing = _closing(opening[0][0], len(opening[0])).search(state.src, state.eMarks[start])
    last = bisect_right(state.bMarks, closing.start(), start) - 1 if closing else end
    found.fences.append((start + 1, last))
    state.line = found.after = min(last + 1, end)
    return True


@cache
def _closing(marker: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"^ {{0,3}}{marker}{{{length},}}+[ \t]*+$", re.MULTILINE)


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read everything beyond the nesting limit as a paragraph."""
    from markdown_it.rules_block import paragraph

    if silent or state.level < MAX_NESTING:
        return False
    return paragraph(state, start, end, silent)
