"""Go tests: functions of `_test.go` files, their subtests, testify, gomega; build constraints."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from lopen.test_integrity.braces import (
    Helpers,
    Region,
    chosen,
    enclosing_condition,
    kind_at,
    regions,
    shallow,
    skip_calls,
)
from lopen.test_integrity.go_checks import FUNCTION, TEST, Test, find_checks, helper_checks
from lopen.test_integrity.lexing import Source, lex
from lopen.test_integrity.suite import Case, Language, Skip, Suite, numbered, support_cases

_SUBTEST = re.compile(r"\b[tsb]\.Run\s*\(\s*(?=\")")
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
    helpers = helper_checks(list(sources.values()))
    return {path: _suite(source, helpers) for path, source in sources.items()}


def _suite(source: Source, helpers: Helpers) -> Suite:
    constraints = tuple(_constraints(source))
    tests = shallow(_tests(source), lambda test: (test.at, test.end))
    cases = [_case(source, test, tests, helpers, constraints) for test in tests]
    uncollected = {
        source.span(f.end(), source.closing(f.end() - 1)): f["name"]
        for f in FUNCTION.finditer(source.code)
        if not TEST.match(f["name"]) and "testing." in f["parameters"]
    }
    return Suite(
        numbered([*cases, *support_cases(helper_checks([source]))]), tuple(main_skips(source)), uncollected
    )


def _constraints(source: Source) -> Iterator[Skip]:
    head = source.text[: source.code.find("package ")]
    for found in _CONSTRAINT.finditer(head):
        yield Skip(
            f"the build constraint {' '.join(found['tags'].split())}",
            source.line(found.start()),
            not _PLATFORMS.match(found["tags"]),
        )


def _tests(source: Source) -> Iterator[Test]:
    for found in FUNCTION.finditer(source.code):
        if not TEST.match(found["name"]) or found["name"] == "TestMain":
            continue
        receiver = found["receiver"]
        name = f"{receiver}.{found['name']}" if receiver else found["name"]
        end = source.closing(found.end() - 1)
        yield Test(name, found.start(), found.end(), end)
        yield from _subtests(source, name, found.end(), end)


def _subtests(source: Source, owner: str, start: int, end: int) -> Iterator[Test]:
    """Subtests with a literal title, whatever their depth, by their own title."""
    for found in _SUBTEST.finditer(source.code, start, end):
        opening = source.code.index("(", found.start())
        arguments = source.arguments(opening)
        brace = source.code.find("{", opening, source.closing(opening))
        if len(arguments) == 2 and brace > 0 and source.bare[arguments[0][1] - 1] in '"`':
            title = source.bare[slice(*arguments[0])].strip().strip('"`')
            yield Test(f"{owner}/{title}", found.start(), brace + 1, source.closing(brace))


def _case(
    source: Source,
    test: Test,
    tests: Sequence[Test],
    helpers: Helpers,
    constraints: tuple[Skip, ...],
) -> Case:
    first, last = (bisect_left(tests, at, key=lambda t: t.at) for at in (test.start, test.end))
    inner = tests[first:last]
    idle: list[Region] = regions(source, test.start, test.end, swallowing=None)
    found = [
        (at, check)
        for at, check in find_checks(source, test, helpers)
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


def _rows(source: Source, test: Test) -> int | None:
    """The rows of the test's largest literal table."""
    counts = [
        len(source.arguments(found.end() - 1)) for found in _TABLE.finditer(source.code, test.start, test.end)
    ]
    return max(counts, default=None)


LANGUAGE = Language("Go", lambda path: path.endswith("_test.go"), collects, read)


_FUNCTION = re.compile(
    r"^func\s+(?P<name>TestMain|init)\s*\(\s*(?:(?P<parameter>\w+)\s+\*testing\.M)?\s*\)\s*\{", re.MULTILINE
)
_SUCCESS = re.compile(r"\b(?:os|syscall)\.Exit\s*\(\s*0\s*\)")
_CHOOSING = re.compile(r"\bflag\.Set\s*\(\s*\"test\.(?:run|skip|list)\"")


def main_skips(source: Source) -> Iterator[Skip]:
    """What keeps a package's tests from running, or from failing."""
    for found in _FUNCTION.finditer(source.code):
        start, end = found.end(), source.closing(found.end() - 1)
        name = found["name"]
        if found["parameter"] and not _runs(source, found["parameter"], start, end):
            yield Skip(f"a TestMain that never calls {found['parameter']}.Run()", source.line(found.start()))
        for ending in _SUCCESS.finditer(source.code, start, end):
            condition = enclosing_condition(source, start, ending.start())
            text = f"{name}'s {ending.group()}" + (f" if {condition}" if condition else "")
            yield Skip(text, source.line(ending.start()), not condition)
        for choice in _CHOOSING.finditer(source.bare, start, end):
            yield Skip(f"{name}'s {choice.group()}, …)", source.line(choice.start()))


def _runs(source: Source, parameter: str, start: int, end: int) -> bool:
    """Whether a TestMain's body runs the tests, or hands its parameter to what may."""
    idle = regions(source, start, end, swallowing=None)
    used = re.compile(rf"\b{parameter}\s*\.\s*Run\s*\(|[(,]\s*{parameter}\s*[,)]")
    return any(kind_at(m.start(), idle) == "real" for m in used.finditer(source.code, start, end))
