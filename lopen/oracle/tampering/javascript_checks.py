"""What a JavaScript test checks: `expect` chains, `assert` calls, the `t` of node and tap, helpers by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lopen.oracle.tampering.braces import always_equal, always_true, chain, definitions, texts
from lopen.oracle.tampering.helpers import Helpers, helper_calls
from lopen.oracle.tampering.lexing import Source
from lopen.oracle.tampering.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, ranks

_EXPECT = re.compile(r"(?<![\w$.])expect\s*(?:\.\s*(?:soft|poll)\s*)?(?:<[^<>()]*>)?\(")
_ASSERT = re.compile(
    r"(?<![\w$.])(?:assert|t|chai\.assert)(?:\s*\.\s*strict)?(?:\s*\.\s*(?P<name>\w+))?\s*\("
)
_REQUEST = re.compile(r"\.\s*expect\s*\(")  # supertest: request(app).get("/").expect(200)
_SHOULD = re.compile(r"(?<=[\w)\]])\s*\.\s*should\b")
_HELPER = re.compile(r"(?<![\w$.])(?P<name>(?:assert|expect|check|verify|ensure)[A-Z_]\w*)\s*\(")
_CALLED = re.compile(r"(?<![\w$.])(?P<name>[A-Za-z_$][\w$]*)\s*\(")
_DEFINED = re.compile(
    r"\bfunction\s+(?P<function>[\w$]+)\s*\([^)]*\)[^{;]*\{"
    r"|\b(?:const|let|var)\s+(?P<arrow>[\w$]+)\s*=\s*(?:async\s*)?(?:\([^)]*\)|[\w$]+)\s*(?::[^={]+)?=>\s*\{"
)
_T_METHODS = frozenset(
    [
        "ok",
        "notOk",
        "equal",
        "notEqual",
        "deepEqual",
        "deepStrictEqual",
        "same",
        "strictSame",
        "is",
        "not",
        "true",
        "false",
        "truthy",
        "falsy",
        "throws",
        "doesNotThrow",
        "rejects",
        "match",
        "like",
        "regex",
        "pass",
        "fail",
        "is_deeply",
        "notStrictEqual",
        "strictEqual",
    ]
)
_RANKS = ranks(
    exact="toBe toEqual toStrictEqual toThrowErrorMatchingInlineSnapshot toHaveBeenCalledWith "
    "toHaveBeenNthCalledWith toHaveBeenLastCalledWith equal equals eql deepEqual eq "
    "strictEqual deepStrictEqual same strictSame is members toBeNull toBeUndefined toBeNaN",
    close="toMatchInlineSnapshot toHaveText toHaveValue toBeCloseTo closeTo toMatchObject "
    "toHaveLength lengthOf toHaveBeenCalledTimes toMatchSnapshot throws rejects toThrow",
    loose="toBeTruthy toBeFalsy ok notOk true false truthy falsy exist isTrue isFalse "
    "toBeInstanceOf toHaveProperty toHaveBeenCalled toThrowError notEqual isOk a an",
    present="toBeDefined exists isDefined isNotNull doesNotThrow pass",
)
_ANYTHING = re.compile(r"^expect\.anything\(\)$|^expect\.any\(Object\)$")
_ASSERTING_ALWAYS = frozenset({"pass"})


def find_checks(source: Source, start: int, end: int, helpers: Helpers) -> Iterator[tuple[int, Check]]:
    """The checks in a range, each with its position."""
    for found in _EXPECT.finditer(source.code, start, end):
        if source.code[found.start() :].startswith("expect.") and "(" not in found.group():
            continue
        yield found.start(), _expected(source, found.start(), found.end() - 1)
    for found in _ASSERT.finditer(source.code, start, end):
        if not found.group().startswith("t") or found["name"] in _T_METHODS:
            yield found.start(), _asserted(source, found.start(), found["name"] or "ok", found.end() - 1)
    for found in _REQUEST.finditer(source.code, start, end):
        text = source.span(found.start(), source.closing(found.end() - 1) + 1)
        yield found.start(), Check(text, "the response", EXACT, source.line(found.start()))
    for found in _SHOULD.finditer(source.code, start, end):
        line = source.line(found.start())
        stop = source.code.find("\n", found.start())
        yield found.start(), Check(source.span(found.start(), stop if stop > 0 else end), "", PARTIAL, line)
    yield from helper_calls(source, start, end, _CALLED, helpers)
    yield from helper_calls(source, start, end, _HELPER, {}, counts=lambda name: name not in helpers)


def _expected(source: Source, at: int, opening: int) -> Check:
    links, stop = chain(source, source.closing(opening) + 1)
    subject = source.span(opening + 1, source.closing(opening))
    text, line = source.span(at, stop), source.line(at)
    names = [name for name, _ in links]
    if not links:
        return Check(text, subject, 0, line, "vacuous")  # expect(x) alone asserts nothing
    matcher, bracket = links[-1]
    arguments = texts(source, bracket) if bracket is not None else []
    if _is_vacuous(subject, matcher, arguments, negated="not" in names):
        return Check(text, subject, 0, line, "vacuous")
    rank = _RANKS.get(matcher, PARTIAL)
    if "not" in names:
        rank = min(rank, LOOSE)
    elif matcher == "toThrow":
        rank = EXACT if arguments else CLOSE
    elif any(_ANYTHING.match(argument) for argument in arguments):
        rank = PRESENT
    return Check(text, subject, rank, line)


def _is_vacuous(subject: str, matcher: str, arguments: Sequence[str], *, negated: bool) -> bool:
    if negated:
        return matcher in {"toBe", "toEqual"} and {subject, *arguments} == {"true", "false"}
    if matcher in {"toBeTruthy", "toBeDefined", "ok", "true", "exist"}:
        return subject in {"true", "1", "{}", "[]"}
    if matcher == "toBeFalsy":
        return subject in {"false", "0"}
    return len(arguments) == 1 and always_equal(subject, arguments[0])


def _asserted(source: Source, at: int, name: str, opening: int) -> Check:
    arguments = texts(source, opening)
    text = source.span(at, source.closing(opening) + 1)
    subject = arguments[0] if arguments else ""
    line = source.line(at)
    boolean = name in {"ok", "true", "isTrue", "isOk", "truthy", "assert"}
    same = len(arguments) > 1 and always_equal(arguments[0], arguments[1]) and "not" not in name.lower()
    if name in _ASSERTING_ALWAYS or (boolean and always_true(subject)) or (not boolean and same):
        return Check(text, subject, 0, line, "vacuous")
    if boolean and re.search(r"[^=!]==", subject):
        return Check(text, subject.split("==")[0].strip(), EXACT, line)
    return Check(text, subject, _RANKS.get(name, PARTIAL), line)


def helper_checks(sources: Sequence[Source]) -> dict[str, tuple[Check, ...]]:
    """Functions by name, with what they check. One level deep: a helper's helpers count by their names."""
    found: dict[str, tuple[Check, ...]] = {}
    for source in sources:
        for match in definitions(source, _DEFINED):
            close = source.closing(match.end() - 1)
            checks = tuple(c for _, c in find_checks(source, match.end(), close, {}))
            found[match["function"] or match["arrow"]] = checks
    return found
