"""Tests of C and C++ that are macros (GoogleTest, Catch2, doctest, Boost, Criterion, Check), and their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from lopen.test_integrity.named_tests.rows import instantiated
from lopen.test_integrity.named_tests.skips import conditional, left_early, left_out, marks
from lopen.test_integrity.named_tests.tables import Table
from lopen.test_integrity.suite import Case, Skip
from lopen.test_integrity.syntax import ParsedFile

_TEST = re.compile(
    rb"^[ \t]*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE|TEST_CASE_METHOD"
    rb"|TEMPLATE_TEST_CASE|BOOST_FIXTURE_TEST_CASE|START_TEST|Test)[ \t]*\((?P<title>[^{;]{0,400}?)\)\s*(?:\*[^{;]{0,100})?\{",
    re.MULTILINE,
)
_SECTION = re.compile(
    rb"\b(?:SECTION|SUBCASE|GIVEN|WHEN|THEN|AND_WHEN|AND_THEN)[ \t]*\((?P<title>[^{;]{0,400}?)\)\s*\{"
)
_BRACKET = re.compile(rb"[{}]")
_PAIRS = frozenset({"TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P", "Test", "TEST_CASE_METHOD"})
_UNREAD = re.compile(
    rb"(?:^|[;{}])\s*(?:\(void\)\s*)?(?P<call>RUN_ALL_TESTS\(\)|UNITY_END\(\)|[\w.]*session\.run\([^;)]*\))\s*;"
)
_FILTER = re.compile(rb"GTEST_FLAG(?:_SET)?\s*\(\s*filter\b[^;\n]*|[\"']--gtest_filter=[^\"'\n]*")


def macro_cases(source: ParsedFile, table: Table) -> Iterator[Case]:
    """The tests of a file that are macros, each followed by its sections."""
    suites = instantiated(source)
    for found in _TEST.finditer(source.bare):
        opening = found.end() - 1
        end = _closing(source.code, opening)
        case = _case(source, table, found.group().decode("utf-8", "replace"), found.start(), opening, end)
        suite = case.name.partition(".")[0]
        if found.group().strip().startswith(b"TYPED_TEST") and suite in suites:
            case = replace(case, rows=suites[suite][0])
        elif found.group().strip().startswith((b"TEST_P", b"TYPED_TEST_P")):
            unused = Skip(f"{suite} without values", case.line, certain=False)
            case = replace(
                case,
                rows=suites.get(suite, (None, ""))[0],
                given=suites.get(suite, (None, ""))[1],
                skips=case.skips if suite in suites else (*case.skips, unused),
            )
        yield case
        for inner in _SECTION.finditer(source.bare, opening, end):
            start = inner.end() - 1
            section = _case(
                source,
                table,
                inner.group().decode("utf-8", "replace"),
                inner.start(),
                start,
                _closing(source.code, start),
            )
            yield replace(section, name=f"{case.name}::{section.name}", skips=())


def _closing(code: bytes, opening: int) -> int:
    """Behind the bracket that closes one."""
    depth = 0
    for found in _BRACKET.finditer(code, opening):
        depth += 1 if found.group() == b"{" else -1
        if depth == 0:
            return found.end()
    return len(code)


def _case(source: ParsedFile, table: Table, head: str, start: int, opening: int, end: int) -> Case:
    line = source.text.count(b"\n", 0, start + len(head) - len(head.lstrip())) + 1
    word, _, given = head.strip().rstrip("{").strip().rstrip(")").partition("(")
    parts = [part.strip().strip('"') for part in given.split(",")]
    name = ".".join(parts[:2]) if word.strip() in _PAIRS else parts[0]
    node = source.root.descendant_for_byte_range(opening, end - 1)
    text = source.span(opening, end)
    skips = [Skip(mark, line) for mark in marks(table, head)]
    if node is not None:
        skips += left_out(source, node)
        for found in re.compile(table.skips.encode()).finditer(source.code, opening, end):
            inner = source.root.descendant_for_byte_range(found.start(), found.start() + 1)
            called = found.group().decode("utf-8", "replace").rstrip("( )")
            if inner is not None:
                skips += conditional(source, called, inner, node)
        skips += left_early(source, node)
    return Case(name.replace("DISABLED_", ""), line, text, (), tuple(skips), None, not text.strip("{} "))


def unread_result(source: ParsedFile) -> Iterator[Skip]:
    """A main function that drops the result of the tests, or chooses some of them."""
    for pattern in (_UNREAD, _FILTER):
        for found in pattern.finditer(source.bare):
            text = (found.groupdict().get("call") or found.group()).decode("utf-8", "replace").strip()
            what = f"the unread result of {text}" if pattern is _UNREAD else text
            yield Skip(what[:80], source.text.count(b"\n", 0, found.end()) + 1)
