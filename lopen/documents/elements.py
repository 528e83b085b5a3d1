"""Markdown as a tree of elements of a fixed set, for a page that creates them one by one.

HTML in the text stays text. A link leads to an HTTP or mail address only; an image becomes a link to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Element = str | list[Any]
"""A text, or a tag, its attributes, then its children."""

_TAGS = {
    *["p", "blockquote", "ul", "ol", "li", "em", "strong", "s"],
    *["table", "thead", "tbody", "tr", "th", "td"],
}
_SCHEMES = ("http://", "https://", "mailto:")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(["table", "strikethrough"])


def elements(text: str) -> list[Element]:
    """Return the elements of a markdown text."""
    return _tree(_parser().parse(text))


def _tree(tokens: Iterable[Token]) -> list[Element]:
    """Return flat tokens as a tree. An element outside the set gives its children alone."""
    levels: list[list[Any]] = [[]]
    for token in tokens:
        if token.nesting == 1:
            levels.append(_opened(token))
        elif token.nesting == -1:
            closed = levels.pop()
            levels[-1].append(closed)
        else:
            levels[-1] += _leaf(token)
    return levels[0]


def _opened(token: Token) -> list[Any]:
    if token.type == "heading_open":  # the page has its own first heading
        return [f"h{min(6, int(token.tag[1]) + 1)}", {}]
    if token.type == "link_open":
        return _link(token.attrs)
    return [token.tag if token.tag in _TAGS and not token.hidden else "span", {}]


def _link(attributes: Mapping[str, str | int | float]) -> list[Any]:
    address = str(attributes.get("href", ""))
    if not address.lower().startswith(_SCHEMES):
        return ["span", {}]
    return ["a", {"href": address, "rel": "noopener noreferrer", "target": "_blank"}]


def _leaf(token: Token) -> list[Element]:
    match token.type:
        case "inline":
            return _tree(token.children or ())
        case "code_inline":
            return [["code", {}, token.content]]
        case "fence" | "code_block":
            return [["pre", {"tabindex": "0"}, ["code", {}, token.content]]]
        case "hardbreak":
            return [["br", {}]]
        case "softbreak":
            return ["\n"]
        case "hr":
            return [["hr", {}]]
        case "image":
            return [[*_link({"href": str(token.attrs.get("src", ""))}), f"image: {token.content}"]]
        case _:
            return [token.content] if token.content else []
