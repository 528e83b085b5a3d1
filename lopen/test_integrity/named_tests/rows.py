"""How many rows a test of C#, Kotlin, Ruby, PHP or C++ runs for, where the source spells them out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import split_arguments
from lopen.test_integrity.syntax import ParsedFile, ancestors

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_ROW = re.compile(
    r"\b(?:InlineData|TestCase|DataRow)\s*(?:\(|(?=[\],]))|\bTestWith(?:Json)?\s*\(|@testWith\b"
)
_ELSEWHERE = re.compile(
    r"\b(?:MemberData|TestCaseSource|ClassData|DynamicData|ValueSource|DataProviderExternal)\b"
)
_LISTED = re.compile(r"@(?:\w+\.)*(?:CsvSource|ValueSource)\s*\(|->\s*with\(\s*(?=\[)|\bwithData\(")
_PROVIDER = re.compile(r"(?:DataProvider\(\s*[\"']|@dataProvider\s+|->\s*with\(\s*[\"'])([\w ]+)")
_TABLE = re.compile(
    r"\w*Theory|TestCase|Data\b|Source\b|Range\b|Values\b|Random\b|Repeat\b|Combinatorial|DataTestMethod"
)
_REPEATING = re.compile(r"\b(?:for|foreach|while|ForEach|Select|All|Assert\.Multiple)\b")
_EACH = re.compile(r"\.(?:each|each_with_index|forEach)\b")
_INSTANTIATED = re.compile(r"\bINSTANTIATE_TEST_(?:SUITE|CASE)_P\s*\(\s*\w+\s*,\s*(\w+)\s*,")
_TYPED = re.compile(r"\bTYPED_TEST_(?:SUITE|CASE)\s*\(\s*(\w+)\s*,\s*([\w:]+)")
_VALUES = re.compile(r"\b(?:Values|ValuesIn)\s*[({]")
_OPENERS, _CLOSERS = "([{", ")]}"


def row_count(source: ParsedFile, head: str, node: Node) -> int | None:
    """The rows that a test's annotations, data provider or the loop around it list; None where that is not known."""
    rows = len(_ROW.findall(head))
    if rows:
        return None if _ELSEWHERE.search(head) else rows
    if listed := _LISTED.search(head):
        inner = _inner(head, listed.end() - 1 if head[listed.end() - 1] in _OPENERS else listed.end())
        names = re.sub(r"^\w+\s*=\s*", "", inner)
        return _entries(names)
    if named := _PROVIDER.search(head):
        return len(split_arguments(_provider(source, named[1].strip()))) or None
    return _looped(source, node)


def runs_once(source: ParsedFile, head: str, node: Node) -> bool:
    """Return True if a C# test has neither a table nor a loop."""
    return source.language == "csharp" and not _TABLE.search(head) and not _REPEATING.search(source.of(node))


def _entries(text: str) -> int:
    """The entries of a list, which may stand in brackets of its own."""
    text = text.strip()
    if text[:1] in {"[", "{"} and len(split_arguments(text)) == 1:
        text = text[1:-1]
    return len(split_arguments(text))


def _inner(text: str, opening: int) -> str:
    """What stands between an opening bracket and the one that closes it."""
    depth = 0
    for at in range(opening, min(len(text), opening + 20_000)):
        depth += (text[at] in _OPENERS) - (text[at] in _CLOSERS)
        if depth == 0:
            return text[opening + 1 : at]
    return text[opening + 1 :]


def given_rows(source: ParsedFile, head: str) -> str:
    """The text of the data provider that a test's head names."""
    named = _PROVIDER.search(head)
    return _provider(source, named[1].strip()) if named else ""


def _provider(source: ParsedFile, name: str) -> str:
    code = source.bare.decode("utf-8", "replace")
    found = re.search(
        rf"\bfunction\s+{re.escape(name)}\s*\(|\bdataset\(\s*[\"']{re.escape(name)}[\"']\s*,", code
    )
    if found is None:
        return ""
    rest = code[found.end() : found.end() + 20_000]
    opening = rest.find("{")
    body = _inner(rest, opening) if "function" in found[0] and opening >= 0 else ""
    if len(re.findall(r"\byield\b", body)):
        return ", ".join(part.replace(",", " ") for part in body.split("yield")[1:])
    start = re.search(r"\breturn\s*(?=\[)" if "function" in found[0] else r"(?=\[)", rest)
    return _inner(rest, start.end()) if start else ""


def _looped(source: ParsedFile, node: Node) -> int | None:
    """The length of the literal list over which a loop around a test goes."""
    for parent in ancestors(node):
        if parent.type in {"call", "call_expression"}:
            text = source.span(parent.start_byte, min(parent.end_byte, parent.start_byte + 20_000))
            if text[:1] in {"[", "{", "%"} or text.startswith("listOf("):
                opening = next((at for at, sign in enumerate(text) if sign in _OPENERS), 0)
                inner = _inner(text, opening)
                if _EACH.match(text[opening + len(inner) + 2 :]):
                    return len(inner.split()) if text.startswith("%") else len(split_arguments(inner))
    return None


def instantiated(source: ParsedFile) -> dict[str, tuple[int | None, str]]:
    """The suites of tests with parameters that a file instantiates: with how many values, and by which text."""
    code = source.bare.decode("utf-8", "replace")
    found: dict[str, tuple[int | None, str]] = {}
    for each in _INSTANTIATED.finditer(code):
        given = _inner(code, code.index("(", each.start()))
        values = _VALUES.search(given)
        inner = _inner(given, values.end() - 1) if values and "ValuesIn(" not in given else ""
        found[each[1]] = (len(split_arguments(inner)) if inner else None, given)
    for each in _TYPED.finditer(code):
        types = re.search(rf"\b{each[2]}\s*=\s*[\w:]*Types\s*<([^;]*)>\s*;", code)
        found[each[1]] = (len(split_arguments(types[1])) if types else None, "")
    return found
