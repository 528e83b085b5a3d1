"""What Java tests expect of responses, streams and architectures: MockMvc, WebTestClient, REST Assured, Reactor, ArchUnit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.bindings import refers
from lopen.test_integrity.java.ranks import CHAINED, matched_rank
from lopen.test_integrity.suite import EXACT, LOOSE, PARTIAL, PRESENT, Check, Kind, words
from lopen.test_integrity.syntax import Link, ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ASKED = re.compile(r"^\w+\((?:\"[^\"]*\")?")
_THERE = re.compile(r"\.(?:exists|isNotEmpty|isArray|isMap)\(\)$|\b(?:notNullValue|anything)\(\)\)$")
_EXPECT = re.compile(
    r"^(?:andExpect(?:All)?|expectNext\w*|expectError\w*|verifyError\w*|assertNext|expectRecordedMatches)$"
)
_RESTED = words("statusCode body header headers cookie contentType time statusLine")
_AWAITING = words("await Awaitility waitAtMost with given")
_LEADING = words(
    "expectStatus expectBody expectHeader expectBodyList expectCookie jsonPath xpath returnResult consumeWith value "
    "exchange getResponseBody getResponseHeaders getStatus expectAll"
)


def response_checks(source: ParsedFile, node: Node, links: Sequence[Link]) -> Iterator[Check]:
    """The checks of a chain of calls that is no call of an assertion."""
    names = [link.name for link in links]
    for link in links:
        if link.arguments is not None and _EXPECT.match(link.name):
            yield from _expected(source, node, link)
    if "exchange" in names:
        yield from _exchanged(source, links[names.index("exchange") + 1 :])
    elif "then" in names[1:] and b"restassured" in source.text:
        yield from _rested(source, links[names.index("then", 1) + 1 :])
    elif names[0] in _AWAITING and names[-1] == "until" and len(links[-1].arguments or ()) == 1:
        text = source.of(links[-1].arguments[0]) if links[-1].arguments else ""
        kind: Kind = "vacuous" if re.search(r"-> true$", text) else "real"
        yield Check(f"until({text})", text, EXACT, source.line(node), kind)
    elif names[-1] == "check" and "should" in names and len(links[-1].arguments or ()) == 1:
        text = source.of(node)
        yield Check(text, text, EXACT, source.line(node))


def _expected(source: ParsedFile, node: Node, link: Link) -> Iterator[Check]:
    """What MockMvc expects of a response, and Reactor of a stream, each in words of its own."""
    for argument in link.arguments or ():
        text = source.of(argument)
        asked = _ASKED.match(text)
        rank = PRESENT if _THERE.search(text) else LOOSE if re.search(r"\.is\dxx", text) else PARTIAL
        yield Check(text, asked[0] if asked else text, rank, source.line(argument))
    if not link.arguments:
        yield Check(source.of(node), link.name, PARTIAL, source.line(node))


def _exchanged(source: ParsedFile, links: Sequence[Link]) -> Iterator[Check]:
    """What WebTestClient expects: each word behind the part of the response that it is about."""
    about = ""
    for link in links:
        text = f"{link.name}({', '.join(map(source.of, link.arguments or ()))})"
        if link.name in _LEADING:
            about = text
        elif link.arguments is not None:
            rank = LOOSE if re.match(r"is\dxx", link.name) else CHAINED.get(link.name, EXACT)
            yield Check(f"{about}.{text}", about, rank, source.line(link.node))


def _rested(source: ParsedFile, links: Sequence[Link]) -> Iterator[Check]:
    """What REST Assured expects of a response."""
    for link in links:
        if link.name in _RESTED and link.arguments:
            given = [source.of(argument) for argument in link.arguments]
            subject = f"{link.name} {given[0] if len(given) > 1 else ''}"
            rank = matched_rank(given[-1]) if "(" in given[-1] else EXACT
            yield Check(f"{link.name}({', '.join(given)})", subject, rank, source.line(link.node))


def is_statement(links: Sequence[Link]) -> bool:
    """Return True if nothing takes what a chain of calls returns."""
    last = links[-1].node.parent
    while last is not None and last.type in {"method_invocation", "object_creation_expression"}:
        last = last.parent
    return last is not None and last.type == "expression_statement"


def only_listed(source: ParsedFile, root: Node, node: Node) -> bool:
    """Return True for a function in a list that has a name, by which nothing calls for it."""
    for parent in ancestors(node):
        if parent.type == "variable_declarator":
            return not refers(source, root, source.name(parent.child_by_field_name("name")), node)
        if parent.type not in {"argument_list", "method_invocation"}:
            return False
    return False
