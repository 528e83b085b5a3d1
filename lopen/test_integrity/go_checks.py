"""What a Go test checks: `t.Error` under an `if`, testify, gomega, an example's output, helpers that take `t`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lopen.test_integrity.braces import (
    Helpers,
    always_equal,
    always_true,
    definitions,
    enclosing_condition,
    helper_calls,
    texts,
)
from lopen.test_integrity.lexing import Source
from lopen.test_integrity.suite import EXACT, LOOSE, PARTIAL, PRESENT, Check, ranks

FUNCTION = re.compile(
    r"^func\s+(?:\(\s*\w+\s+\*?(?P<receiver>\w+)\s*\)\s*)?(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)[^{\n]*\{",
    re.MULTILINE,
)
TEST = re.compile(r"(?:Test|Example|Fuzz)(?![a-z])")
_FAILING = re.compile(r"\b[tbfc]b?\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(")
_LIBRARY = re.compile(
    r"(?<![\w.])(?:assert|require|must|qt|td|is|c|s|suite|s\.Require\(\)|s\.Assert\(\))\.(?P<name>[A-Z]\w*)\s*\("
)
_HELPER = re.compile(r"(?<![\w.])(?P<name>\w+)\s*\(\s*(?:t|tb|s\.T\(\))\s*[,)]")
_GOMEGA = re.compile(r"(?<![\w.])(?:Expect|Ω|Eventually)\s*\(")
_OUTPUT = re.compile(r"//\s*(?:Unordered )?[Oo]utput:[^\n]*(?:\n\s*//[^\n]*)*")
_NO_HELPERS = frozenset({"Run", "append", "len", "panic", "print", "New", "require", "assert", "func"})
_TESTIFY = ranks(
    exact="Equal Equalf Exactly EqualError EqualValues ErrorIs JSONEq Nil Len Empty Equals Zero DeepEqual",
    close="InDelta InEpsilon ElementsMatch WithinDuration ErrorContains ErrorAs",
    loose="NoError Error True False NotEqual NotContains NotEmpty NotZero IsType Panics",
    present="NotNil NotPanics",
)


@dataclass(frozen=True, slots=True)
class Test:
    """A test function or subtest: its name and the range of its body."""

    name: str
    at: int
    start: int
    end: int


def find_checks(source: Source, test: Test, helpers: Helpers) -> Iterator[tuple[int, Check]]:
    """The checks in a test's body, each with its position."""
    for found in _FAILING.finditer(source.code, test.start, test.end):
        yield found.start(), _failing(source, test.start, found.start(), found.end() - 1)
    for found in _LIBRARY.finditer(source.code, test.start, test.end):
        yield found.start(), _asserted(source, found.start(), found["name"], found.end() - 1)
    for found in _GOMEGA.finditer(source.code, test.start, test.end):
        stop = source.code.find("\n", found.start())
        text = source.span(found.start(), stop if stop > 0 else test.end)
        subject = source.span(found.end(), source.closing(found.end() - 1))
        yield found.start(), Check(text, subject, PARTIAL, source.line(found.start()))
    yield from helper_calls(
        source,
        test.start,
        test.end,
        _HELPER,
        helpers,
        counts=lambda name: name not in _NO_HELPERS,
        subject=1,  # behind `t`
    )
    if test.name.startswith("Example"):
        for found in _OUTPUT.finditer(source.text, test.start, test.end):
            text = " ".join(found.group().split())
            yield found.start(), Check(text, "output", EXACT, source.line(found.start()))


def _failing(source: Source, start: int, at: int, opening: int) -> Check:
    """`t.Errorf` checks what the `if` around it asks."""
    condition = enclosing_condition(source, start, at)
    asked = condition.rpartition(";")[2].strip()
    line = source.line(at)
    if not asked:
        return Check(source.span(at, source.closing(opening) + 1), "", PARTIAL, line)
    if _never(asked):
        return Check(condition, asked, 0, line, "vacuous")
    subject, rank = _subject_and_rank(asked)
    return Check(condition, subject, rank, line)


def _never(condition: str) -> bool:
    if any(part.strip() in {"false", "!true"} for part in condition.split("&&")):
        return True
    both = re.match(r"^([\w.]+)\s*(?:!=|<|>)\s*([\w.]+)$", condition)
    return both is not None and both[1] == both[2]


def _subject_and_rank(condition: str) -> tuple[str, int]:
    left, operator, right = _split(condition)
    if operator in {"!=", "=="} and right == "nil":
        return left, LOOSE if operator == "!=" else PRESENT
    if operator == "!=":
        return left, EXACT
    if operator == "==":
        return left, LOOSE
    if operator:
        return left, PARTIAL
    called = re.match(r"!?\s*[\w.]*\.?(DeepEqual|Equal|Is)\(\s*([^,]+),", condition)
    return (called[2].strip(), EXACT) if called else (condition.lstrip("!"), LOOSE)


def _split(condition: str) -> tuple[str, str, str]:
    found = re.match(r"^(?P<left>.+?)\s*(?P<operator>!=|==|<=|>=|<|>)\s*(?P<right>.+)$", condition)
    return (found["left"], found["operator"], found["right"]) if found else (condition, "", "")


def _asserted(source: Source, at: int, name: str, opening: int) -> Check:
    arguments = texts(source, opening)
    if arguments and re.fullmatch(r"t|tb|c|s\.T\(\)", arguments[0]):
        arguments = arguments[1:]
    text = source.span(at, source.closing(opening) + 1)
    line = source.line(at)
    equal = name in {"Equal", "Equalf", "Exactly", "EqualValues"} and len(arguments) > 1
    same = equal and always_equal(arguments[0], arguments[1])
    true = name in {"True", "Truef"} and bool(arguments) and always_true(arguments[0])
    false = name == "False" and arguments[:1] == ["false"]
    if same or true or false:
        return Check(text, "", 0, line, "vacuous")
    subject = arguments[1] if equal else arguments[0] if arguments else ""
    return Check(text, subject, _TESTIFY.get(name, PARTIAL), line)


def helper_checks(sources: Sequence[Source]) -> dict[str, tuple[Check, ...]]:
    """Functions that take `t`, by name, with what they check."""
    found: dict[str, tuple[Check, ...]] = {}
    for source in sources:
        for match in definitions(source, FUNCTION):
            if "testing." in match["parameters"] and not TEST.match(match["name"]):
                test = Test(match["name"], match.start(), match.end(), source.closing(match.end() - 1))
                found[match["name"]] = tuple(check for _, check in find_checks(source, test, {}))
    return found
