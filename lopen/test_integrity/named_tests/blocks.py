"""Tests that are calls with a title and a block: Kotest's and Pest's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lopen.test_integrity.named_tests.rows import given_rows, row_count
from lopen.test_integrity.named_tests.skips import calls, left_early, marks
from lopen.test_integrity.named_tests.tables import Table
from lopen.test_integrity.suite import Case, Skip
from lopen.test_integrity.syntax import ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TITLE = re.compile(r"\"((?:\\.|[^\"\\])*)\"|'((?:\\.|[^'\\])*)'")
_FOCUS = re.compile(r"^(?:\w+\()?\s*\"f:|->\s*only\(")
_CLOSURES = frozenset({"anonymous_function", "arrow_function"})


@dataclass(slots=True)
class _Block:
    """A titled block. `head` is what stands before its body and, in a chain of calls, behind it."""

    node: Node
    body: Node | None
    head: str
    around: tuple[_Block, ...] = ()
    holds: bool = False  # other titled blocks

    @property
    def title(self) -> str:
        """The title, without the signs that switch a test off or pick it out."""
        if self.head.startswith("withData"):
            return "withData"
        found = _TITLE.search(self.head)
        return (
            re.sub(r"^(?:!|f:)", "", " ".join((found[1] or found[2] or "").split())) if found else self.head
        )


def block_cases(source: ParsedFile, table: Table) -> Iterator[Case]:
    """The titled blocks that hold no others."""
    for block in _blocks(source, table):
        if block.holds:
            continue
        line = source.line(block.node)
        around = [each for each in ancestors(block.node) if each.type in table.groups]
        classes = [source.name(each.child_by_field_name("name")) for each in reversed(around)]
        skips = [Skip(mark, line) for each in (*block.around, block) for mark in marks(table, each.head)]
        skips += [Skip(mark, line) for each in around for mark in marks(table, _before(source, each))]
        skips += [*calls(source, table, block.body), *left_early(source, block.body)]
        text = source.of(block.body)
        yield Case(
            "::".join([*filter(None, classes), *(each.title for each in block.around), block.title]),
            line,
            text or block.head,
            (),
            tuple(skips),
            row_count(source, block.head, block.node),
            block.body is not None and not text.strip("{} "),
            given=f"{block.head} {given_rows(source, block.head)}",
        )


def _before(source: ParsedFile, group: Node) -> str:
    """What stands before the name of a class: its annotations."""
    name = group.child_by_field_name("name")
    return source.span(group.start_byte, name.start_byte) if name is not None else ""


def focused_blocks(source: ParsedFile, table: Table) -> Iterator[Skip]:
    """The titled blocks that are to run alone."""
    for block in _blocks(source, table):
        if found := _FOCUS.search(block.head):
            yield Skip(f"{found[0]} {block.title}"[:60], source.line(block.node))


def _blocks(source: ParsedFile, table: Table) -> list[_Block]:
    if table.grammar == "kotlin" and b"io.kotest" not in source.text:
        return []
    found: list[_Block] = []
    waiting: list[_Block] = []
    matched = sorted(
        source.matches(table.blocks), key=lambda match: (match["test"].start_byte, -match["test"].end_byte)
    )
    for match in matched:
        block = _block(source, match["test"], match.get("body"))
        if not re.search(table.titled, block.head):
            continue
        while waiting and waiting[-1].node.end_byte <= block.node.start_byte:
            waiting.pop()
        if waiting:
            waiting[-1].holds = True
        block.around = tuple(waiting[:8])
        found.append(block)
        waiting.append(block)
    return found


def _block(source: ParsedFile, node: Node, body: Node | None) -> _Block:
    if body is None:
        given = node.child_by_field_name("arguments")
        inner = [
            each for argument in (given.named_children if given else ()) for each in argument.named_children
        ]
        closures = [each for each in inner if each.type in _CLOSURES]
        body = closures[0].child_by_field_name("body") if closures else None
    last = node
    while last.parent is not None and last.parent.type == "member_call_expression":
        last = last.parent
    head = source.span(node.start_byte, body.start_byte if body is not None else node.end_byte)
    return _Block(node, body, f"{head} {source.span(node.end_byte, last.end_byte)}".strip())
