"""The block structure of a markdown text, as markdown-it sees it. The only importer of markdown-it.

`scan` finds the top-level headings, the code fences and the front matter of a whole document, with the
help of `lopen.documents.fast_blocks`. `items` reads a short text (one section) fully. Lines are counted from
0; they end at LF, CRLF or a lone CR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from lopen.documents.fast_blocks import DEEPEST, FastBlocks, install

if TYPE_CHECKING:  # 50 ms that most commands need not pay
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST_MARKED_UP_TITLE = 300  # beyond it a title is taken as written: nested brackets cost quadratic time

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
    """The text between the `---` lines, and the line it starts on."""

    content: str
    first: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """What `scan` finds, in the order of the text."""

    headings: tuple[Heading, ...]
    fences: tuple[tuple[int, int], ...]  # the lines [first, after) between a fence's markers, at any depth
    front_matter: FrontMatter | None


@dataclass(frozen=True, slots=True)
class Item:
    """A list item, or (depth 0) a paragraph outside every list. Block quotes are left out.

    `content` is the source of its own text with newlines kept, code blocks included, nested items not.
    """

    content: str
    first: int
    depth: int


@cache
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST + 8}).disable(["inline", "text_join"])
    install(parser)
    return parser.use(front_matter_plugin)


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def scan(text: str) -> Blocks:
    """Headings, fences and front matter of a document. A heading in a list, a quote, HTML or code is none."""
    found = FastBlocks()
    environment = found.environment()
    tokens = _block_parser().parse(text, environment)
    headings = [
        Heading(first, first + 1, level, _plain(source, environment))
        for first, level, source in found.headings
    ]
    headings += [
        Heading(*_lines(token), int(token.tag[1:]), _plain(tokens[at + 1].content, environment))
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]
    fences = found.fences + [_inside(token) for token in tokens if token.type == "fence"]
    front = next((t for t in tokens[:1] if t.type == "front_matter"), None)
    return Blocks(
        tuple(sorted(headings)),
        tuple(sorted(fences)),
        FrontMatter(front.content, 1) if front else None,
    )


def items(text: str) -> tuple[Item, ...]:
    """The list items and loose paragraphs of `text`, in order."""
    return tuple(_items(_block_parser().parse(text)))


def _lines(token: Token) -> tuple[int, int]:
    first, after = token.map or (0, 0)
    return first, after


def _inside(fence: Token) -> tuple[int, int]:
    """The token does not say whether the fence was closed; how many lines its content has does."""
    first, after = _lines(fence)
    content = fence.content.count("\n") + (not fence.content.endswith("\n") and fence.content != "")
    return first + 1, min(first + 1 + content, after)


def _plain(source: str, environment: dict[str, Any]) -> str:
    """The words of a heading, on one line: what a reader sees, without emphasis, links or code marks."""
    if len(source) <= LONGEST_MARKED_UP_TITLE and _MARKUP.search(source):
        tokens: list[Token] = []
        parser = _inline_parser()
        parser.inline.parse(source, parser, environment, tokens)
        source = "".join(_words(tokens))
    return " ".join(source.split())


def _words(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield " "
        elif token.type == "image":
            yield from _words(token.children or ())
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
