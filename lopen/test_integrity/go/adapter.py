"""Go tests: functions of `_test.go` files, their subtests, testify, gomega; build constraints, `TestMain`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.conditions import ALWAYS, ELSEWHERE, HERE, NEVER, truth
from lopen.test_integrity.flow import Helpers
from lopen.test_integrity.go.body import TABLES, GoBody, GoNames
from lopen.test_integrity.go.checks import main_skips
from lopen.test_integrity.go.specs import Specs
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import (
    EXACT,
    HOOK,
    Case,
    Check,
    Language,
    Skip,
    Suite,
    numbered,
    support_cases,
)
from lopen.test_integrity.syntax import ParsedFile, parsed_file

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_TEST = re.compile(r"^(?:Test|Example|Fuzz)(?![a-z])")
_ASSERTING = frozenset({"assert", "require", "Require", "Assert"})
_OUTPUT = re.compile(r"//\s*(?:Unordered )?[Oo]utput:[^\n]*(?:\n\s*//[^\n]*)*")
_CONSTRAINT = re.compile(r"^//\s*(?P<kind>go:build|\+build)\s+(?P<tags>.+)$", re.MULTILINE)
_HERE = re.compile(r"^(?:linux|unix|amd64|arm64|cgo|gc|go1\.\d+)$")
_FOREIGN = (
    r"windows|darwin|freebsd|netbsd|openbsd|plan9|solaris|js|wasm|wasip1|aix|android|ios|dragonfly|illumos"
)
_FOREIGN_FILE = re.compile(
    rf"_(?:{_FOREIGN})(?:_\w+)?_test\.go$|_(?:386|arm|mips\w*|ppc64\w*|riscv64|s390x)_test\.go$"
)
_SET_UP = re.compile(r"^(?:SetupTest|SetupSuite|SetupSubTest|BeforeTest|SetUpTest|SetUpSuite)$")
_TEAR_DOWN = re.compile(r"^(?:TearDown|After)(?:Test|Suite|SubTest)$")
_RUN_SUITE = re.compile(r"\bsuite\.Run\(\w+, ?(?:new\((?P<new>\w+)|&(?P<made>\w+))")
_SUITE = re.compile(rb"^type (\w+) struct \{[^}]*?^\s*suite\.Suite\b", re.MULTILINE)
_REWRITING = re.compile(
    rb"\bflag\.Bool(?:Var)?\([^)\n]*\"(update\w*|golden|overwrite|regenerate|[\w-]*update)\", true,"
)
_LEFT_OUT = re.compile(r"!\s*(?:ci|CI|test\w*|short|fast|unit|race|\w*ci)\b")
_FUNCTIONS = """
(function_declaration name: (identifier) @name) @function
(method_declaration name: (field_identifier) @name) @function
"""
_TESTERS = "(parameter_declaration name: (identifier) @name type: (_) @type)"
_ASSERTERS = """
(short_var_declaration left: (expression_list . (identifier) @name .) right: (expression_list . (call_expression) @value .))
(import_spec name: (package_identifier) @name path: (_) @value)
"""
_NUMBERS = """
(const_spec name: (identifier) @name value: (expression_list . [(int_literal) (float_literal)] @value .))
"""
_ASSERTER = re.compile(r"(?:assert|require|is|qt)\.New\(|/(?:assert|require)\"$")


_PASSED_OVER = re.compile(r"(?:^|/)(?:testdata|vendor|[._][^/]*)/")


def collects(path: str) -> bool:
    """Return True if `go test` on Linux reads the file."""
    name = path.rpartition("/")[2]
    named = name.endswith("_test.go") and name[0] not in "_."
    return named and not _PASSED_OVER.search(path) and not _FOREIGN_FILE.search(path)


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; functions that take `t` and check count where they are called."""
    sources = {
        path: parsed_file(text, "go")
        for path, text in files.items()
        if path.endswith("_test.go") or "testing." in text
    }
    names = {path: _names(source) for path, source in sources.items()}
    bodies = {path: list(_helpers(source, names[path])) for path, source in sources.items()}
    everywhere = [pair for found in bodies.values() for pair in found]
    helpers = {name: body.checks for name, body in everywhere}
    skipping = {name: marks for name, body in everywhere if (marks := _of_tester(body))}
    suites = {
        path: _suite(path, source, names[path], bodies[path], helpers, skipping)
        for path, source in sources.items()
    }
    return (
        suites if all(b"suite.Suite" not in each.text for each in sources.values()) else _run(suites, sources)
    )


def _run(suites: Mapping[str, Suite], sources: Mapping[str, ParsedFile]) -> dict[str, Suite]:
    """The suites, each test of a testify suite that nothing runs with that as a skip; what runs one is no test."""
    declared = {name.decode() for each in sources.values() for name in _SUITE.findall(each.text)}
    runners = [found for suite in suites.values() for case in suite.cases for found in _runs(case)]
    lone = declared - set(runners)
    return {
        path: replace(
            suite,
            cases=tuple(
                replace(case, skips=(*case.skips, Skip(f"a suite {owner} that nothing runs", case.line)))
                if (owner := case.name.partition(".")[0]) in lone and not case.support
                else replace(case, support=case.support or bool(_runs(case) and not case.real))
                for case in suite.cases
            ),
        )
        for path, suite in suites.items()
    }


def _runs(case: Case) -> list[str]:
    return [found["new"] or found["made"] for found in _RUN_SUITE.finditer(case.body)]


def _names(source: ParsedFile) -> GoNames:
    testers = {
        source.name(found["name"])
        for found in source.matches(_TESTERS)
        if re.search(r"\*?testing\.(?:T|B|F|TB)$", source.of(found["type"]))
    }
    asserters = {
        source.name(found["name"])
        for found in source.matches(_ASSERTERS)
        if _ASSERTER.search(source.of(found["value"]))
    }
    tables = {source.name(found["name"]): found["value"] for found in source.matches(TABLES)}
    numbers = {source.name(found["name"]): source.of(found["value"]) for found in source.matches(_NUMBERS)}
    usual = frozenset(testers | {"t", "b", "f", "tb"})
    return GoNames(usual, _ASSERTING | asserters, tables, numbers, b"ginkgo" in source.text)


def _helpers(source: ParsedFile, names: GoNames) -> Iterator[tuple[str, GoBody]]:
    """Functions that take `t` and are not tests."""
    for name, function in source.functions(_FUNCTIONS):
        if "testing." in _parameters(source, function) and not _TEST.match(name):
            body = GoBody(source, function, {}, names, name)
            body.block(function.child_by_field_name("body"), Place())
            yield name, body


def _of_tester(body: GoBody) -> list[Skip]:
    """A helper's calls of `t.Skip`; where it returns early, the test goes on."""
    return [skip for skip in body.skips if not skip.text.startswith(("return", "continue"))]


def _parameters(source: ParsedFile, function: Node) -> str:
    return source.of(function.child_by_field_name("parameters"))


def _suite(
    path: str,
    source: ParsedFile,
    names: GoNames,
    own: Sequence[tuple[str, GoBody]],
    helpers: Helpers,
    skipping: Mapping[str, Sequence[Skip]],
) -> Suite:
    constraints = tuple(_constraints(source))
    cases: list[Case] = []
    narrowing: list[Skip] = []
    hooks: dict[str, Sequence[Check]] = {}
    for name, function in source.functions(_FUNCTIONS):
        if name in {"TestMain", "init"}:
            narrowing += main_skips(source, name, function)
            if "goleak.VerifyTestMain(" in source.of(function):
                text = "goleak.VerifyTestMain"
                hooks[HOOK + text] = [Check(f"{text}(m)", "leaks", EXACT, source.line(function))]
        elif _SET_UP.match(name) and function.type == "method_declaration":
            body = GoBody(source, function, helpers, names, name, skipping)
            body.block(function.child_by_field_name("body"), Place())
            narrowing += [replace(skip, text=f"{name}'s {skip.text}") for skip in _of_tester(body)]
        elif _TEAR_DOWN.match(name) and function.type == "method_declaration":
            body = GoBody(source, function, helpers, names, name, skipping)
            body.block(function.child_by_field_name("body"), Place())
            hooks |= {f"{HOOK}{name}": body.checks} if body.checks else {}
        elif _is_test(name, source, function):
            full = f"{receiver}.{name}" if (receiver := _receiver(source, function)) else name
            cases += _cases(GoBody(source, function, helpers, names, full, skipping), function, constraints)
    narrowing += _rewritten_by_default(source)
    if names.ginkgo:
        specs = Specs(source, names, helpers, skipping)
        specs.read(source.root, (), constraints)
        cases += specs.cases
        narrowing += specs.narrowing
    uncollected = {
        source.of(function.child_by_field_name("body")): name
        for name, function in source.functions(_FUNCTIONS)
        if not _is_test(name, source, function) and "testing." in _parameters(source, function)
    }
    support = support_cases({name: body.checks for name, body in own} | hooks)
    cases = cases if path.endswith("_test.go") else []
    return Suite(numbered([*cases, *support]), tuple(narrowing), uncollected)


def _rewritten_by_default(source: ParsedFile) -> Iterator[Skip]:
    """A flag that rewrites the expected files, on for everybody."""
    for found in _REWRITING.finditer(source.bare):
        line = source.text.count(b"\n", 0, found.start()) + 1
        yield Skip(f"the flag {found[1].decode()}, which rewrites what is expected, is on and", line)


def _is_test(name: str, source: ParsedFile, function: Node) -> bool:
    if not _TEST.match(name):
        return False
    parameters = _parameters(source, function)
    takes = re.match(r"^\((?:\w+ )?\*?\w*\.?[TFC]\)$", parameters)
    return (
        parameters == "()"
        if name.startswith("Example") or function.type == "method_declaration"
        else bool(takes)
    )


def _receiver(source: ParsedFile, function: Node) -> str:
    found = re.search(r"(\w+)\)$", source.of(function.child_by_field_name("receiver")))
    return found[1] if found else ""


def _constraints(source: ParsedFile) -> Iterator[Skip]:
    for comment in source.root.named_children:
        if comment.type != "comment":
            return
        if found := _CONSTRAINT.match(source.name(comment)):
            tags = found["tags"]
            if found["kind"] == "+build":
                tags = " || ".join(part.replace(",", " && ") for part in tags.split())
            included = truth(tags, _tag)
            if included != ALWAYS or _LEFT_OUT.search(tags):
                text = f"the build constraint {' '.join(found['tags'].split())}"
                yield Skip(text, source.line(comment), included not in {HERE, ALWAYS})


def _tag(name: str) -> int:
    """The truth of a build tag; one that the person has to name is not set."""
    if _HERE.match(name):
        return HERE
    return ELSEWHERE if re.fullmatch(_FOREIGN, name) else NEVER


def _cases(body: GoBody, function: Node, constraints: tuple[Skip, ...]) -> list[Case]:
    """A test and its subtests."""
    source, inner = body.source, function.child_by_field_name("body")
    body.block(inner, Place())
    if body.name.startswith("Example") and inner is not None:
        commented = source.text[inner.start_byte : inner.end_byte].decode("utf-8", "replace")
        for found in _OUTPUT.finditer(commented):
            body.checks.append(Check(" ".join(found.group().split()), "output", EXACT, source.line(inner)))
    skips = (*constraints, *body.outer, *dict.fromkeys(body.skips))
    empty = inner is None or not source.of(inner).strip("{} ")
    text = _without(source, inner, [node for _, node in body.subtests])
    if body.convey and body.subtests and not body.checks:
        return [case for each, node in body.subtests for case in _cases(each, node, skips)]
    own = Case(body.name, source.line(function), text, tuple(body.checks), skips, body.rows, empty)
    return [own, *(case for each, node in body.subtests for case in _cases(each, node, constraints))]


def _without(source: ParsedFile, body: Node | None, parts: Sequence[Node]) -> str:
    """A body's text without the subtests in it."""
    if body is None:
        return ""
    edges = [
        body.start_byte,
        *(at for part in parts for at in (part.start_byte, part.end_byte)),
        body.end_byte,
    ]
    return " ".join(source.span(*pair) for pair in zip(edges[::2], edges[1::2], strict=True))


_SUPPORT = re.compile(r"_test\.go$|(?:test|assert|expect)[^/]*(?:/[^/]*)?\.go$")

LANGUAGE = Language("Go", lambda path: bool(_SUPPORT.search(path)), collects, read)
