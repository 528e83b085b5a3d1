"""How many rows a Java test runs for, where annotations or methods of its file spell them out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.java.annotations import Annotation, annotations_of
from lopen.test_integrity.syntax import COMMENTS, Link, ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TABLES = frozenset({"CsvSource", "ValueSource", "EnumSource"})
_FIXED_ROWS = {"NullSource": 1, "EmptySource": 1, "NullAndEmptySource": 2}
_SOURCE = re.compile(r"^\w+Source$")
_PROPERTY_TRIES = 1000  # that jqwik makes where a property says nothing
_LISTING = re.compile(r"(?:Stream|List|Set|Arrays)\.(?:of|asList)$")
_METHODS = "(method_declaration name: (identifier) @name) @method"

Methods = Sequence[tuple[str, "Node", Sequence[Annotation]]]  # of a file, with their annotations
_CHANGING = frozenset({"filter", "skip", "takeWhile", "dropWhile", "flatMap", "distinct"})


def methods_of(source: ParsedFile) -> Methods:
    """The methods of a file."""
    found = source.matches(_METHODS)
    return [(source.name(m["name"]), m["method"], annotations_of(source, m["method"])) for m in found]


def test_rows(source: ParsedFile, run: Sequence[Annotation], provider: Node | None) -> int | None:
    """The rows that annotations spell out, or that what they name lists; None where one does not.

    `run` are the annotations of a test method.
    """
    counts = [_listed(source, provider)] if provider is not None else []
    for each in run:
        number = re.search(r"\d+", each.arguments)
        if each.name == "RepeatedTest" and number:
            counts.append(int(number[0]))
        elif each.name == "Property":
            tries = re.search(r"\btries = (\d+)", each.arguments)
            counts.append(int(tries[1]) if tries else _PROPERTY_TRIES)
        elif _SOURCE.match(each.name) and (
            provider is None or each.name not in {"MethodSource", "ArgumentsSource"}
        ):
            counts.append(_FIXED_ROWS.get(each.name) or _spelled_out(source, each))
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def row_provider(source: ParsedFile, run: Sequence[Annotation], name: str, methods: Methods) -> Node | None:
    """The method that lists a test's rows: named, in a named class, or the one of JUnit 4's Parameterized."""
    for each in run:
        if each.name == "MethodSource" and not each.arguments:
            return _provided(source, methods, name)
        named = re.search(r'(?:dataProvider = )?"(\w+)"', each.arguments)
        if named and (each.name == "MethodSource" or "dataProvider" in each.arguments):
            return _provided(source, methods, named[1])
        made = re.match(r"(?:value = )?(\w+)\.class", each.arguments)
        if made and each.name == "ArgumentsSource":
            return _provided(source, methods, "provideArguments", made[1])
    return _provided(source, methods, "@Parameters") if b"@Parameters" in source.text else None


def _provided(source: ParsedFile, methods: Methods, name: str, owner: str = "") -> Node | None:
    """The method of that name (in a class), the data provider or the method with that annotation."""
    for own, method, marks in methods:
        marked = any(
            (mark.name == "DataProvider" and f'"{name}"' in mark.arguments) or f"@{mark.name}" == name
            for mark in marks
        )
        if (own == name and (not owner or _inside(source, method, owner))) or marked:
            return method
    return None


def _inside(source: ParsedFile, method: Node, owner: str) -> bool:
    around = (each for each in ancestors(method) if each.type == "class_declaration")
    return any(source.name(each.child_by_field_name("name")) == owner for each in around)


def _spelled_out(source: ParsedFile, each: Annotation) -> int | None:
    """The rows in an annotation."""
    if each.name not in _TABLES or (each.name == "EnumSource" and "names" not in each.arguments):
        return None
    if "EXCLUDE" in each.arguments:
        return None
    if block := re.search(r'textBlock = """(.*)"""', source.name(each.node), re.DOTALL):
        lines = [line for line in block[1].splitlines() if line.strip() and line.strip()[0] != "#"]
        return len(lines) - bool(re.search(r"useHeadersInDisplayName = true", each.arguments))
    lists = source.find("(element_value_array_initializer) @list", "list", each.node)
    return len([c for c in lists[0].named_children if c.type not in COMMENTS]) if lists else 1


def _listed(source: ParsedFile, method: Node) -> int | None:
    """The rows that a method's list, stream or array has, as far as no later step changes their number."""
    for call in source.find("(method_invocation) @call", "call", method):
        links = source.chain(call)
        given = links[1].arguments or () if len(links) > 1 else ()
        wrapped = len(given) == 1 and given[0].type == "array_creation_expression"
        if _LISTING.search(".".join(link.name for link in links[:2])) and len(links) > 1 and not wrapped:
            return _cut(source, len(given), links[2:])
    tables = source.find("(array_initializer) @list", "list", method)
    return len([c for c in tables[0].named_children if c.type not in COMMENTS]) if tables else None


def _cut(source: ParsedFile, rows: int, steps: Sequence[Link]) -> int | None:
    for step in steps:
        if step.name == "limit" and step.arguments:
            text = source.of(step.arguments[0])
            if not text.isdigit():
                return None
            rows = min(rows, int(text))
        elif step.name in _CHANGING:
            return None
    return rows
