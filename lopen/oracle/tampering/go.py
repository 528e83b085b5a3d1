"""Go tests: functions of `_test.go` files, their subtests, testify, gomega; build constraints."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lopen.oracle.tampering.braces import (
    Region,
    always_equal,
    always_true,
    chosen,
    definitions,
    enclosing_condition,
    regions,
    shallow,
    skip_calls,
    texts,
)
from lopen.oracle.tampering.lexing import Source, lex
from lopen.oracle.tampering.suite import (
    CLOSE,
    EXACT,
    LOOSE,
    PARTIAL,
    PRESENT,
    Case,
    Check,
    Language,
    Skip,
    Suite,
    called,
    numbered,
    support_cases,
)

_FUNCTION = re.compile(
    r"^func\s+(?:\(\s*\w+\s+\*?(?P<receiver>\w+)\s*\)\s*)?(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)[^{\n]*\{",
    re.MULTILINE,
)
_TEST = re.compile(r"(?:Test|Example|Fuzz)(?![a-z])")
_SUBTEST = re.compile(r"\b[tsb]\.Run\s*\(\s*(?=\")")
_FAILING = re.compile(r"\b[tbfc]b?\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(")
_LIBRARY = re.compile(
    r"(?<![\w.])(?:assert|require|must|qt|td|is|c|s|suite|s\.Require\(\)|s\.Assert\(\))\.(?P<name>[A-Z]\w*)\s*\("
)
_HELPER = re.compile(r"(?<![\w.])(?P<name>\w+)\s*\(\s*(?:t|tb|s\.T\(\))\s*[,)]")
_GOMEGA = re.compile(r"(?<![\w.])(?:Expect|Ω|Eventually)\s*\(")
_OUTPUT = re.compile(r"//\s*(?:Unordered )?[Oo]utput:[^\n]*(?:\n\s*//[^\n]*)*")
_SKIP = re.compile(r"\b(?:[tbs]b?|s\.T\(\))\.Skip(?:f|Now)?\s*\(")
_NOT_HERE = re.compile(r"GOOS\s*(?:==|!=)|testing\.Short\(\)")
_CONSTRAINT = re.compile(r"^//\s*(?:go:build|\+build)\s+(?P<tags>.+)$", re.MULTILINE)
_PLATFORMS = re.compile(
    r"^[!()&| ,]*(?:linux|unix|windows|darwin|freebsd|netbsd|openbsd|amd64|arm64|cgo|race|go1\.\d+|[!()&| ,])+$"
)
_FOREIGN_FILE = re.compile(
    r"_(?:windows|darwin|freebsd|netbsd|openbsd|plan9|solaris|js|wasm|aix|android|ios)(?:_\w+)?_test\.go$"
)
_TABLE = re.compile(r"(?:\[\]|\bmap\[[^\]]*\])\s*(?:struct\s*\{[^{}]*\}|\*?[\w.]+)\s*\{")
_NO_HELPERS = frozenset({"Run", "append", "len", "panic", "print", "New", "require", "assert"})
_TESTIFY = {
    **dict.fromkeys(
        [
            "Equal",
            "Equalf",
            "Exactly",
            "EqualError",
            "EqualValues",
            "ErrorIs",
            "JSONEq",
            "Nil",
            "Len",
            "Empty",
            "Equals",
            "Zero",
            "DeepEqual",
        ],
        EXACT,
    ),
    **dict.fromkeys(
        ["InDelta", "InEpsilon", "ElementsMatch", "WithinDuration", "ErrorContains", "ErrorAs"], CLOSE
    ),
    **dict.fromkeys(
        [
            "NoError",
            "Error",
            "True",
            "False",
            "NotEqual",
            "NotContains",
            "NotEmpty",
            "NotZero",
            "IsType",
            "Panics",
        ],
        LOOSE,
    ),
    **dict.fromkeys(["NotNil", "NotPanics"], PRESENT),
}


@dataclass(frozen=True, slots=True)
class _Test:
    """A test function or subtest: its name and the range of its body."""

    name: str
    at: int
    start: int
    end: int


def collects(path: str) -> bool:
    """Whether `go test` on Linux reads the file."""
    name = path.rpartition("/")[2]
    return (
        name.endswith("_test.go")
        and name[0] not in "_."
        and "testdata/" not in path
        and not _FOREIGN_FILE.search(path)
    )


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; functions that take `t` and check count where they are called."""
    sources = {path: lex(text, "go") for path, text in files.items()}
    helpers = _helpers(list(sources.values()))
    return {path: _suite(source, helpers) for path, source in sources.items()}


def _suite(source: Source, helpers: Mapping[str, Sequence[Check]]) -> Suite:
    constraints = tuple(_constraints(source))
    tests = shallow(_tests(source), lambda test: (test.at, test.end))
    cases = [_case(source, test, tests, helpers, constraints) for test in tests]
    uncollected = {
        source.span(f.end(), source.closing(f.end() - 1)): f["name"]
        for f in _FUNCTION.finditer(source.code)
        if not _TEST.match(f["name"]) and "testing." in f["parameters"]
    }
    return Suite(numbered([*cases, *support_cases(_helpers([source]))]), (), uncollected)


def _constraints(source: Source) -> Iterator[Skip]:
    head = source.text[: source.code.find("package ")]
    for found in _CONSTRAINT.finditer(head):
        yield Skip(
            f"the build constraint {' '.join(found['tags'].split())}",
            source.line(found.start()),
            not _PLATFORMS.match(found["tags"]),
        )


def _tests(source: Source) -> Iterator[_Test]:
    for found in _FUNCTION.finditer(source.code):
        if not _TEST.match(found["name"]) or found["name"] == "TestMain":
            continue
        receiver = found["receiver"]
        name = f"{receiver}.{found['name']}" if receiver else found["name"]
        end = source.closing(found.end() - 1)
        yield _Test(name, found.start(), found.end(), end)
        yield from _subtests(source, name, found.end(), end)


def _subtests(source: Source, owner: str, start: int, end: int) -> Iterator[_Test]:
    """Subtests with a literal title, whatever their depth, by their own title."""
    for found in _SUBTEST.finditer(source.code, start, end):
        opening = source.code.index("(", found.start())
        arguments = source.arguments(opening)
        brace = source.code.find("{", opening, source.closing(opening))
        if len(arguments) == 2 and brace > 0 and source.bare[arguments[0][1] - 1] in '"`':
            title = source.bare[slice(*arguments[0])].strip().strip('"`')
            yield _Test(f"{owner}/{title}", found.start(), brace + 1, source.closing(brace))


def _case(
    source: Source,
    test: _Test,
    tests: Sequence[_Test],
    helpers: Mapping[str, Sequence[Check]],
    constraints: tuple[Skip, ...],
) -> Case:
    first, last = (bisect_left(tests, at, key=lambda t: t.at) for at in (test.start, test.end))
    inner = tests[first:last]
    idle: list[Region] = regions(source, test.start, test.end, swallowing=None)
    found = [
        (at, check)
        for at, check in _checks(source, test, helpers)
        if not any(t.start <= at < t.end for t in inner)
    ]
    skips = skip_calls(source, test.start, test.end, _SKIP, _NOT_HERE)
    body = source.span(test.start, test.end)
    empty = not source.code[test.start : test.end].strip()
    checks = chosen(found, idle)
    return Case(
        test.name,
        source.line(test.at),
        body,
        checks,
        (*constraints, *skips),
        _rows(source, test),
        empty,
    )


def _rows(source: Source, test: _Test) -> int | None:
    """The rows of the test's largest literal table."""
    counts = [
        len(source.arguments(found.end() - 1)) for found in _TABLE.finditer(source.code, test.start, test.end)
    ]
    return max(counts, default=None)


def _checks(
    source: Source, test: _Test, helpers: Mapping[str, Sequence[Check]]
) -> Iterator[tuple[int, Check]]:
    for found in _FAILING.finditer(source.code, test.start, test.end):
        yield found.start(), _failing(source, test.start, found.start(), found.end() - 1)
    for found in _LIBRARY.finditer(source.code, test.start, test.end):
        yield found.start(), _asserted(source, found.start(), found["name"], found.end() - 1)
    for found in _GOMEGA.finditer(source.code, test.start, test.end):
        stop = source.code.find("\n", found.start())
        text = source.span(found.start(), stop if stop > 0 else test.end)
        subject = source.span(found.end(), source.closing(found.end() - 1))
        yield found.start(), Check(text, subject, PARTIAL, source.line(found.start()))
    for found in _HELPER.finditer(source.code, test.start, test.end):
        yield from _by_helper(source, found, helpers)
    if test.name.startswith("Example"):
        for found in _OUTPUT.finditer(source.text, test.start, test.end):
            text = " ".join(found.group().split())
            yield found.start(), Check(text, "output", EXACT, source.line(found.start()))


def _by_helper(
    source: Source, found: re.Match[str], helpers: Mapping[str, Sequence[Check]]
) -> Iterator[tuple[int, Check]]:
    name = found["name"]
    opening = source.code.index("(", found.start())
    text = source.span(found.start(), source.closing(opening) + 1)
    check = Check(text, ", ".join(texts(source, opening)[1:2]) or text, EXACT, source.line(found.start()))
    if name in helpers:
        yield from ((found.start(), each) for each in called(check, helpers[name]))
    elif name not in _NO_HELPERS and name != "func":
        yield found.start(), check


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


def _helpers(sources: Sequence[Source]) -> dict[str, tuple[Check, ...]]:
    found: dict[str, tuple[Check, ...]] = {}
    for source in sources:
        for match in definitions(source, _FUNCTION):
            if "testing." in match["parameters"] and not _TEST.match(match["name"]):
                test = _Test(match["name"], match.start(), match.end(), source.closing(match.end() - 1))
                found[match["name"]] = tuple(check for _, check in _checks(source, test, {}))
    return found


LANGUAGE = Language("Go", lambda path: path.endswith("_test.go"), collects, read)
