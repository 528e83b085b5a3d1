"""Markdown for tests: documents made to confuse a parser, and what markdown-it itself says about them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

_FRAGMENTS = [
    *("", "", "", "   ", "\t", "text", "a `code` *em* __strong__", "ends in two blanks  ", "a\\", "é", "\u2028"),
    *("# H", "## H2 ##", "####### seven", "#none", "#", "# #", "##  # #", "#\t", "## a \\#", "### `c` *d* [l](u) ![i](s)"),
    *("===", "---", "--", "-", "=", "- - -", "***", "* * *", "_ _ _", "...", "name: x"),
    *("```", "````", "``` ", "``` a`b", "```py", "~~~", "~~~ py", "`", "``` `"),
    *("<div>", "</div>", "<!--", "-->", "<!-- x -->", "<script>", "</script>", "<b>", "<?php", "?>", "<![CDATA["),
    *("[a]: /u", "[a]: /u 'ti", "tle'", "[a]:", "/u", "[a\n]: /u", "## [a] b", "[x] tick", "[b]"),
    *("    code", "\tcode", "1986. year", "| a | b |", "\x0bv", "\x0c", "\0", "\x85", "\u00a0"),
]  # fmt: skip
_PREFIXES = [
    "",
    "",
    "",
    "- ",
    "* ",
    "+   ",
    "-\t",
    "1. ",
    "2) ",
    "10. ",
    "- [ ] ",
    "> ",
    ">",
    " ",
    "  ",
    "    ",
    "\t",
]

lines = st.builds(
    "{}{}".format, st.lists(st.sampled_from(_PREFIXES), max_size=3).map("".join), st.sampled_from(_FRAGMENTS)
)
line_ends = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Lines of all constructs, mixed, sometimes with a byte order mark, front matter or no end to the last line."""
    some = draw(st.lists(lines, max_size=24))
    end = draw(st.one_of(st.none(), line_ends))
    text = "".join(line + (end or draw(line_ends)) for line in some)
    head = draw(st.sampled_from(["", "", "", "---\nname: n\n---\n"]))
    return head + (text if draw(st.booleans()) else text.rstrip("\r\n"))


anything = st.one_of(documents(), st.text(), st.text(alphabet="#`~ \t\r\n>-=[]x<\0\ufeff\u2028a"))


@dataclass(frozen=True, slots=True)
class Reference:
    """What a full parse sees: headings as (first line, line after, level, title), lines inside fences."""

    headings: list[tuple[int, int, int, str]]
    fences: list[tuple[int, int]]


def full_parse(text: str) -> Reference:
    """The document as markdown-it parses it, inline content and all; its limit of nesting out of the way."""
    parser = MarkdownIt("commonmark", {"maxNesting": 128}).use(front_matter_plugin)
    tokens = parser.parse(text)
    pairs = pairwise(tokens)
    headings = [
        (*span(opening), int(opening.tag[1:]), " ".join(words(inline.children or []).split()))
        for opening, inline in pairs
        if opening.type == "heading_open" and opening.level == 0
    ]
    fences = []
    for token in tokens:
        if token.type == "fence":
            content = len(re.findall(r"[^\n]*\n|[^\n]+$", token.content))
            fences.append((span(token)[0] + 1, min(span(token)[0] + 1 + content, span(token)[1])))
    return Reference(headings, fences)


def span(token: Token) -> tuple[int, int]:
    """The lines of a token."""
    assert token.map is not None
    return token.map[0], token.map[1]


def words(tokens: list[Token]) -> str:
    """The text a reader sees."""
    found = ""
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            found += " "
        elif token.type == "image":
            found += words(token.children or [])
        elif token.type != "html_inline":
            found += token.content
    return found
