"""What a Java test checks: assertions of JUnit, AssertJ, Hamcrest and Truth, Mockito's `verify`, helpers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lopen.test_integrity.braces import (
    Helpers,
    always_equal,
    always_true,
    chain,
    definitions,
    helper_calls,
    is_literal,
    texts,
)
from lopen.test_integrity.lexing import Source
from lopen.test_integrity.suite import EXACT, LOOSE, PARTIAL, PRESENT, Check, ranks

_ASSERT = re.compile(
    r"(?<![\w$])(?:(?:Assert|Assertions|Assertion|Truth|MatcherAssert)\s*\.\s*)?(?P<name>assert\w*|fail|expectThrows)\s*\("
)
_MOCK = re.compile(r"(?<![\w$])(?:Mockito\s*\.\s*|\w+\s*\.\s*)?(?P<name>verify\w*|expectMsg\w*)\s*\(")
_EXPECT = re.compile(r"\.\s*(?P<name>andExpect|expectStatus|expectBody|expectNext\w*)\s*\(")
_FUNCTION = re.compile(r"\b(?:void|boolean|[A-Z]\w*)\s+(?P<name>\w+)\s*\([^)]*\)\s*(?:throws\s+[\w., ]+)?\{")
_CALLED = re.compile(r"(?<![\w$.])(?:this\s*\.\s*)?(?P<name>[a-z]\w*)\s*\(")
_RANKS = ranks(
    exact="assertEquals assertSame assertNull assertArrayEquals assertIterableEquals",
    close="assertLinesMatch assertThrowsExactly assertThrows expectThrows verifyNoMoreInteractions",
    loose="assertTrue assertFalse assertNotEquals assertNotSame assertInstanceOf",
    present="assertNotNull assertDoesNotThrow",
)
_CHAINED = ranks(
    exact="isEqualTo isSameAs containsExactly isNull isZero isOne hasMessage isEmpty isTrue isFalse",
    close="isCloseTo isWithin containsExactlyInAnyOrder hasSize isInstanceOf isExactlyInstanceOf",
    loose="isNotEqualTo isNotEmpty isNotBlank isNotZero doesNotContain",
    present="isNotNull isPresent isNotSameAs",
)


def find_checks(source: Source, start: int, end: int, helpers: Helpers) -> Iterator[tuple[int, Check]]:
    """The checks in a range, each with its position."""
    for found in _ASSERT.finditer(source.code, start, end):
        if found["name"] not in helpers:
            yield found.start(), _asserted(source, found.start(), found["name"], found.end() - 1)
    for pattern in (_MOCK, _EXPECT):
        for found in pattern.finditer(source.code, start, end):
            _, stop = chain(source, source.closing(found.end() - 1) + 1)
            text = source.span(found.start(), stop)
            yield found.start(), Check(text, found["name"], PARTIAL, source.line(found.start()))
    yield from helper_calls(source, start, end, _CALLED, helpers)


def _asserted(source: Source, at: int, name: str, opening: int) -> Check:
    arguments = texts(source, opening)
    links, stop = chain(source, source.closing(opening) + 1)
    text, line = source.span(at, stop), source.line(at)
    if name == "assertThat" and len(arguments) == 1:
        return _fluent(source, text, arguments[0], links, line)
    if _is_vacuous(name, arguments):
        return Check(text, "", 0, line, "vacuous")
    subject = _subject(name, arguments)
    rank = _RANKS.get(name, EXACT)  # a helper with a name of its own is given the benefit of the doubt
    if name == "assertThat" and len(arguments) > 1:
        rank = _matched(arguments[-1])
    if name == "assertTrue" and re.search(r"\.equals\(|[^=!<>]==[^=]", subject):
        rank = EXACT
    if name == "assertThrows" and arguments and arguments[0] in {"Exception.class", "Throwable.class"}:
        rank = PRESENT
    return Check(text, subject, rank, line)


def _matched(matcher: str) -> int:
    """How much a Hamcrest matcher pins down."""
    name = re.match(r"[\w.]*", matcher)[0].rpartition(".")[2]  # type: ignore[index]  # matches even nothing
    if name in {"is", "equalTo", "sameInstance", "nullValue"}:
        return EXACT
    return {"notNullValue": PRESENT, "not": LOOSE, "instanceOf": LOOSE}.get(name, PARTIAL)


def _subject(name: str, arguments: Sequence[str]) -> str:
    """What is checked: JUnit puts the expected value first."""
    if name in {"assertEquals", "assertNotEquals", "assertSame", "assertArrayEquals"} and len(arguments) > 1:
        return arguments[0] if is_literal(arguments[1]) else arguments[1]
    if name in {"assertThrows", "expectThrows"}:
        return "an exception"
    return arguments[0] if arguments else ""


def _fluent(
    source: Source, text: str, subject: str, links: Sequence[tuple[str, int | None]], line: int
) -> Check:
    ranks = [
        _CHAINED.get(name, PARTIAL) for name, _ in links if name not in {"as", "describedAs", "extracting"}
    ]
    if not ranks:
        return Check(text, subject, 0, line, "vacuous")  # assertThat(x) alone asserts nothing
    name, opening = links[-1]
    arguments = texts(source, opening) if opening is not None else []
    same = name in {"isEqualTo", "isSameAs"} and len(arguments) == 1 and always_equal(subject, arguments[0])
    if same or (name == "isTrue" and always_true(subject)) or (name == "isFalse" and subject == "false"):
        return Check(text, subject, 0, line, "vacuous")
    return Check(text, subject, max(ranks), line)


def _is_vacuous(name: str, arguments: Sequence[str]) -> bool:
    if name == "assertTrue":
        return any(always_true(argument) for argument in arguments)
    if name == "assertFalse":
        return "false" in arguments
    if name in {"assertEquals", "assertSame"} and len(arguments) > 1:
        return always_equal(arguments[0], arguments[1])
    return (
        name == "assertNotNull"
        and len(arguments) == 1
        and is_literal(arguments[0])
        and arguments[0] != "null"
    )


def helper_checks(sources: Sequence[Source]) -> dict[str, tuple[Check, ...]]:
    """Methods by name, with what they check."""
    found: dict[str, tuple[Check, ...]] = {}
    for source in sources:
        for match in definitions(source, _FUNCTION):
            close = source.closing(match.end() - 1)
            found[match["name"]] = tuple(c for _, c in find_checks(source, match.end(), close, {}))
    return found
