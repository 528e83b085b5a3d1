"""Calls that declare a group or a test of JavaScript: their titles, their options, and what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, NEVER, truth
from lopen.test_integrity.javascript.words import GROUPS, SKIPPING, Word
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import EXACT, Case, Check, Skip
from lopen.test_integrity.syntax import FUNCTIONS, Link, ParsedFile, unwrapped

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node


@dataclass(slots=True)
class Block:
    """A call that declares a group or a test, and what keeps what is in it from running."""

    word: Word
    written: str
    node: Node
    arguments: tuple[Node, ...]
    table: Node | None
    place: Place
    groups: tuple[Block, ...]
    skips: list[Skip] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        return self.word.base in GROUPS or bool(GROUPS & set(self.word.dots))

    @property
    def function(self) -> Node | None:
        """The function that is the block's body, be it wrapped in a call, or written in the word's own function."""
        if self.word.body is not None:
            return self.word.body
        for argument in self.arguments[1:]:
            if argument.type in FUNCTIONS:
                return argument
            inner = argument.child_by_field_name("arguments") if argument.type == "call_expression" else None
            for child in inner.named_children if inner is not None else ():
                if child.type in FUNCTIONS:
                    return child
        return None


def marks(source: ParsedFile, block: Block) -> list[Skip]:
    """Note what the words and options of a block say about running it; return what narrows the run to it."""
    word, line = block.word, source.line(block.node)
    options = [a for a in block.arguments[1:] if a.type == "object"]
    only = "only" in word.dots
    for option in (pair for each in options for pair in each.named_children if pair.type == "pair"):
        key = source.name(option.child_by_field_name("key"))
        value = source.of(option.child_by_field_name("value"))
        holds = truth(value)
        if key == "only":
            only |= holds == ALWAYS
        elif key == "browser":
            block.skips.append(Skip(f"{block.written} with {{ {key} }}: {value}", line, certain=False))
        elif key in {"skip", "todo", "fails", "ignore"} and holds != NEVER:
            reason = "" if value[:1] in "\"'`" or holds == ALWAYS else f" if {value}"
            block.skips.append(Skip(f"{block.written} with {{ {key} }}{reason}", line, holds != ELSEWHERE))
    narrowing = [Skip(block.written, line)] if only else []
    if word.note is not None and not (only and "bound" in word.note.text):
        block.skips.append(word.note)
    elif set(word.dots) & SKIPPING:
        block.skips.append(Skip(block.written, line))
    if word.condition:
        _add_condition(block, word.condition, line)
    if len(block.arguments) == 1 and not block.is_group and not word.dots and not block.skips:
        block.skips.append(Skip(f"{block.written} without a body", line))
    return narrowing


def _add_condition(block: Block, condition: str, line: int) -> None:
    holds = truth(condition)
    if holds == NEVER:
        block.skips.append(Skip(block.written, line))
    elif holds != ALWAYS:
        block.skips.append(Skip(f"{block.written} if not {condition}", line, ALWAYS - holds != ELSEWHERE))


def given(source: ParsedFile, arguments: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return a declaration's arguments as title, options and function: Deno takes them in an object, or a named function."""
    first = arguments[0] if arguments else None
    if first is not None and first.type in FUNCTIONS and (name := first.child_by_field_name("name")):
        return name, first
    if first is None or first.type != "object":
        return arguments
    found: dict[str, Node] = {}
    for member in first.named_children:
        key = source.name(member.child_by_field_name("key") or member.child_by_field_name("name"))
        value = member.child_by_field_name("value")
        found[key] = value if value is not None else member
    return (found["name"], first, found["fn"]) if {"name", "fn"} <= set(found) else arguments


def is_titled(arguments: Sequence[Node]) -> bool:
    """Return True if these may be the arguments of a declaration: a title, or a function behind whatever stands for one."""
    return bool(arguments) and (
        arguments[0].type in {"string", "template_string"}
        or any(argument.type in FUNCTIONS or argument.type == "identifier" for argument in arguments[1:])
    )


def rule_case(source: ParsedFile, node: Node, links: Sequence[Link]) -> Case | None:
    """Return the test that ESLint's RuleTester makes of `tester.run(name, rule, { valid: […], invalid: […] })`."""
    given = links[-1].arguments or ()
    if links[-1].name != "run" or len(given) != 3 or given[2].type != "object":
        return None
    pairs = [pair for pair in given[2].named_children if pair.type == "pair"]
    tables = {source.name(p.child_by_field_name("key")): p.child_by_field_name("value") for p in pairs}
    if "invalid" not in tables:
        return None
    rows = [
        row
        for table in tables.values()
        for row in (table.named_children if table is not None and table.type == "array" else ())
        if row.type != "comment"
    ]
    spread = len(tables) != len(given[2].named_children) or any(row.type == "spread_element" for row in rows)
    literal = all(table is not None and table.type == "array" for table in tables.values())
    line, name = source.line(node), f"the rule {source.name(given[0])}"
    check = Check(name, name, EXACT, line)
    return Case(name, line, source.of(given[2]), (check,), rows=len(rows) if literal and not spread else None)


def content(source: ParsedFile, tables: Mapping[str, Node], block: Block) -> str:
    """Return what a test says: its function, and the tables that it is repeated for."""
    parts = [source.of(block.arguments[-1])] if len(block.arguments) > 1 else []
    if block.word.body is not None:
        parts = [source.of(block.node), source.of(block.word.body)]
    for each in (block, *reversed(block.groups)):
        for table in (each.table, each.place.table):
            if table is not None:
                said = re.findall(r"[\w$]+", source.of(table)[:200])
                named = [tables[word] for word in said if word in tables]
                parts = [*map(source.of, named or [table]), *parts]
    return " ".join(parts)


def row_count(source: ParsedFile, block: Block, count: Callable[[Node], int | None]) -> int | None:
    """Return how many rows a test runs for: its own table's, that of a group, or of the loop around it."""
    rows = None
    for each in (*block.groups, block):
        found = each.place.rows
        if each.table is not None and each.table.type == "template_string":
            found = len([line for line in source.name(each.table).splitlines() if "${" in line])
        elif each.table is not None:
            found = count(unwrapped(each.table))
        if found is not None:
            rows = found * (1 if rows is None else rows)
    return rows


def is_empty(block: Block) -> bool:
    """Return True if a block has a function that does nothing."""
    body = block.function.child_by_field_name("body") if block.function is not None else None
    return body is not None and not [child for child in body.named_children if child.type != "comment"]


_ESCAPE = re.compile(
    r"\\(?:(?P<code>(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]+\}))|(?P<one>.))", re.DOTALL
)
_LONGEST_TITLE = 200  # characters


def title(source: ParsedFile, node: Node) -> str:
    """Return a title as a runner prints it, in one line; what only a run can tell stands as `${…}`."""
    text = source.name(node)
    if node.type not in {"string", "template_string"}:
        text = _unknown(text)
    for part in node.named_children:
        if part.type == "template_substitution":
            written = source.name(part)
            text = text.replace(written, _unknown(written[2:-1]), 1)
    text = _ESCAPE.sub(_unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_TITLE else text[:_LONGEST_TITLE] + "${…}"


def _unknown(written: str) -> str:
    return f"${{{re.sub(r'[{}]', ' ', written)}}}"


def _unescaped(found: re.Match[str]) -> str:
    if code := found["code"]:
        number = int(code[1:].strip("{}"), 16)
        return chr(number) if number < 0x110000 else found[0]
    return " " if found["one"] in "nrtvfb\n" else found["one"]
