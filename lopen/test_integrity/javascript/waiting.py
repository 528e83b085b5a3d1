"""What a JavaScript test waits for, and which failures of a promise end without one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.suite import words
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, ancestors, may_fail

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node
_WAITING = frozenset({"resolves", "rejects", "eventually", "rejectedWith", "rejected", "fulfilled"})
_WEB_FIRST = words(
    "toHaveText toContainText toBeVisible toBeHidden toBeEnabled toBeDisabled toBeChecked toHaveURL toHaveTitle toHaveCount "
    "toHaveValue toHaveAttribute toHaveClass toBeAttached toBeFocused toBeEmpty"
)
_IDLE = re.compile(r"(?:console\.\w+|(?:\w+\.)?noop|ignore\w*|Boolean)$")


def must_be_awaited(links: Sequence[Link], *, playwright: bool) -> bool:
    """Return True if an assertion is a promise: that of a promise, and what Playwright and supertest ask for."""
    names = {link.name for link in links}
    if links[0].name != "expect" and "expect" in names and "end" not in names and len(links) > 2:
        return links[-1].name == "expect"  # supertest sends nothing before
    if links[-1].name in _WEB_FIRST and playwright:
        return True
    return bool(names & _WAITING and "expect" in names) or (
        links[0].name == "assert" and links[-1].name in {"rejects", "doesNotReject"}
    )


def is_awaited(source: ParsedFile, node: Node) -> bool:
    """Return True if the test waits for a promise: it is awaited, returned, or handed to something else."""
    for parent in ancestors(node):
        kind = parent.type
        if kind == "expression_statement":
            return False
        if kind in {"await_expression", "return_statement", "yield_expression", "variable_declarator"}:
            return True
        if kind in {"assignment_expression", "for_in_statement", *FUNCTIONS}:
            return True
        if kind == "call_expression" and source.chain(parent)[0].name != "Promise":
            links = source.chain(parent)
            if links[-1].name not in {"then", "catch", "finally"}:
                return True
    return True


def is_caught(source: ParsedFile, links: Sequence[Link]) -> bool:
    """Return True if a `catch` behind a promise, or a second function of `then`, lets no failure through."""
    handlers = [link.arguments[0] for link in links if link.name == "catch" and link.arguments]
    handlers += [
        link.arguments[1]
        for link in links
        if link.name == "then" and link.arguments and len(link.arguments) > 1
    ]
    return any(
        not may_fail(source, each) if each.type in FUNCTIONS else _IDLE.match(source.of(each))
        for each in handlers
    )


def is_async(function: Node) -> bool:
    """Return True if a function is marked so."""
    return any(child.type == "async" for child in function.children[:2])


def outermost_call(node: Node) -> Node:
    """The whole chain of calls that a function is an argument, or the callee, of."""
    found = node
    for parent in _chained(node):
        found = parent
    return found


def _chained(node: Node) -> Iterator[Node]:
    for parent in ancestors(node):
        if parent.type not in {
            "arguments",
            "call_expression",
            "member_expression",
            "parenthesized_expression",
        }:
            return
        yield parent
