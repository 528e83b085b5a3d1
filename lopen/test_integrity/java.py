"""Java tests: JUnit 3, 4 and 5, TestNG; assertions of JUnit, AssertJ, Hamcrest, Truth and Mockito."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lopen.test_integrity.braces import (
    Helpers,
    Region,
    chosen,
    definitions,
    enclosing_condition,
    helper_cases,
    regions,
    shallow,
    skip_calls,
    texts,
)
from lopen.test_integrity.java_checks import find_checks, helper_checks
from lopen.test_integrity.lexing import Source, lex
from lopen.test_integrity.suite import CLOSE, Case, Check, Language, Skip, Suite, numbered

_ANNOTATION = re.compile(r"@(?!interface\b)(?P<name>[\w.]+)\s*(?P<open>\()?")
_MODIFIERS = (
    r"\s*(?:(?:public|protected|private|static|final|abstract|synchronized|default|sealed|strictfp)\s+)*"
)
_METHOD = re.compile(
    _MODIFIERS
    + r"(?:<[^>{]*>\s*)?[\w.<>\[\],?]{1,100}(?:\s[\w.<>\[\],?]{1,100}){0,3}?\s+(?P<name>\w+)\s*\([^)]*\)\s*(?:throws\s+[\w., \n]+)?\{"
)
_CLASS = re.compile(_MODIFIERS + r"(?:class|interface|record)\s+(?P<name>\w+)[^{;]{0,2000}\{")
_ANY_CLASS = re.compile(r"\b(?:class|interface|record)\s+(?P<name>\w+)(?P<heritage>[^{;]{0,2000})\{")
_PARENT = re.compile(r"\bextends\s+(?:\w+\.)*(\w+)")
_TURNED = re.compile(
    r"\bexpected\s*=\s*(?:[\w.]+\.)?(?:AssertionError|ComparisonFailure|Throwable|Error)\.class"
)
_JUNIT3 = re.compile(r"\bpublic\s+void\s+(?P<name>test\w*)\s*\(\s*\)\s*(?:throws\s+[\w., ]+)?\{")
_TESTS = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Property"})
_SKIPPING = frozenset({"Disabled", "Ignore"})
_CONDITIONAL = re.compile(r"^(?:Disabled|Enabled)(?:On|If|For)\w*$")
_SWALLOWING = re.compile(r"\b(?:Throwable|AssertionError|AssertionFailedError|Error)\b")


@dataclass(frozen=True, slots=True)
class _Annotation:
    """An annotation: its last name, its arguments as text, where its bracket opens, where it starts."""

    name: str
    arguments: str
    opening: int | None
    start: int


_Run = tuple[tuple[_Annotation, ...], int]  # annotations, and where what they stand before starts


def covers(path: str) -> bool:
    """Whether a file holds tests: by folder or by name."""
    return path.endswith(".java") and bool(
        re.search(
            r"(?:^|/)(?:test|tests|it|integrationTest)/|(?:Test|Tests|TestCase|IT|Spec)\.java$|/Test\w+\.java$",
            path,
        )
    )


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites; methods that assert, in whichever of the files, count where they are called."""
    sources = {path: lex(text, "java") for path, text in files.items()}
    helpers = helper_checks(list(sources.values()))
    runs = {path: _annotated_outermost(source) for path, source in sources.items()}
    marks = {path: _class_marks(source, runs[path]) for path, source in sources.items()}
    shared = {name: skips for found in marks.values() for name, skips in found.items()}
    return {
        path: _suite(source, runs[path], {**shared, **marks[path]}, helpers)
        for path, source in sources.items()
    }


def _classes(source: Source) -> list[tuple[re.Match[str], int]]:
    return [(m, source.closing(m.end() - 1)) for m in _ANY_CLASS.finditer(source.code)]


def _class_marks(source: Source, runs: Sequence[_Run]) -> dict[str, tuple[Skip, ...]]:
    """What keeps the tests of each class from running: annotations, static blocks, methods that set up."""
    classes = _classes(source)
    marks = {m["name"]: list(static_skips(source, m.end(), close)) for m, close in classes}
    for run, end in runs:
        owner = _CLASS.match(source.code, end)
        method = _METHOD.match(source.code, end)
        if owner:
            marks.setdefault(owner["name"], []).extend(_skips(source, run))
        elif method and any(a.name in SETTING_UP for a in run):
            around = _around(classes, method.start("name"))
            skips = body_skips(source, method.end(), source.closing(method.end() - 1))
            named = [replace(skip, text=f"{method['name']}'s {skip.text}") for skip in skips]
            marks.setdefault(around[-1]["name"] if around else "", []).extend(named)
    return {name: tuple(skips) for name, skips in marks.items()}


def _suite(
    source: Source,
    runs: Sequence[_Run],
    marks: Mapping[str, tuple[Skip, ...]],
    helpers: Helpers,
) -> Suite:
    classes = _classes(source)
    cases = []
    seen = set()
    for run, end in runs:
        method = _METHOD.match(source.code, end)
        if method and any(a.name in _TESTS for a in run) and not _CLASS.match(source.code, end):
            seen.add(method.end())
            cases.append(_case(source, run, method, _around(classes, method.start("name")), marks, helpers))
    for method in definitions(source, _JUNIT3):
        around = _around(classes, method.start())
        if method.end() not in seen and any("TestCase" in m["heritage"] for m in around):
            cases.append(_case(source, (), method, around, marks, helpers))
    return Suite(numbered([*cases, *helper_cases(helper_checks([source]), cases)]))


def _annotated_outermost(source: Source) -> list[_Run]:
    return shallow(_annotated(source), lambda found: (found[0][0].start, _end(source, found[1])))


def _end(source: Source, at: int) -> int:
    """Where the class or method that starts at `at` ends."""
    found = _CLASS.match(source.code, at) or _METHOD.match(source.code, at)
    return source.closing(found.end() - 1) if found else at


def _around(classes: Sequence[tuple[re.Match[str], int]], at: int) -> list[re.Match[str]]:
    return [m for m, close in classes if m.start() < at < close]


def _annotated(source: Source) -> Iterator[_Run]:
    """Runs of annotations and where what they annotate starts."""
    at = 0
    while found := _ANNOTATION.search(source.code, at):
        run = []
        following: re.Match[str] | None = found
        while following:
            opening = following.end() - 1 if following["open"] else None
            end = source.closing(opening) + 1 if opening is not None else following.end()
            arguments = source.span(opening + 1, end - 1) if opening is not None else ""
            run.append(
                _Annotation(
                    following["name"].rpartition(".")[2], arguments, opening, following.start("name") - 1
                )
            )
            at = end
            following = re.compile(_MODIFIERS + _ANNOTATION.pattern).match(source.code, at)
        yield tuple(run), at


def _case(
    source: Source,
    run: Sequence[_Annotation],
    method: re.Match[str],
    around: Sequence[re.Match[str]],
    marks: Mapping[str, tuple[Skip, ...]],
    helpers: Helpers,
) -> Case:
    start, end = method.end(), source.closing(method.end() - 1)
    line = source.line(method.start("name"))
    idle: list[Region] = regions(source, start, end, swallowing=_SWALLOWING)
    owners = [name for owner in around for name in (owner["name"], *_PARENT.findall(owner["heritage"]))]
    skips = [skip for name in owners for skip in marks.get(name, ())]
    skips += _skips(source, run)
    skips += body_skips(source, start, end)
    annotations = " ".join(f"@{a.name}({a.arguments})" for a in run)
    return Case(
        "::".join([*(owner["name"] for owner in around), method["name"]]),
        line,
        f"{annotations} {source.span(start, end)}",
        (*_expected(run, line), *chosen(find_checks(source, start, end, helpers), idle)),
        tuple(skips),
        _rows(source, run),
        not source.code[start:end].strip(),
        turned=next(
            (f"@Test({a.arguments})" for a in run if a.name == "Test" and _TURNED.search(a.arguments)), ""
        ),
    )


def _skips(source: Source, run: Sequence[_Annotation]) -> Iterator[Skip]:
    for annotation in run:
        line = source.line(annotation.start)
        if annotation.name in _SKIPPING:
            yield Skip(f"@{annotation.name}", line)
        elif annotation.name == "Test" and re.search(r"\benabled\s*=\s*false", annotation.arguments):
            yield Skip("@Test(enabled = false)", line)
        elif _CONDITIONAL.match(annotation.name):
            yield Skip(f"@{annotation.name}({annotation.arguments})", line, not _is_foreign(annotation))


def _is_foreign(annotation: _Annotation) -> bool:
    """Whether a condition on the platform leaves Linux in."""
    if annotation.name.startswith("Enabled"):
        return "LINUX" in annotation.arguments
    return bool(FOREIGN.search(annotation.arguments)) and "LINUX" not in annotation.arguments


def _expected(run: Sequence[_Annotation], line: int) -> Iterator[Check]:
    for annotation in run:
        if annotation.name == "Test" and "expected" in annotation.arguments:
            yield Check(f"@Test({annotation.arguments})", "an exception", CLOSE, line)


def _rows(source: Source, run: Sequence[_Annotation]) -> int | None:
    """The rows that annotations spell out (`@CsvSource({…})`, `@ValueSource(ints = {…})`)."""
    for annotation in run:
        if annotation.name in {"CsvSource", "ValueSource"} and annotation.opening is not None:
            close = source.closing(annotation.opening)
            brace = source.code.find("{", annotation.opening, close)
            return len(source.arguments(brace)) if brace >= 0 else 1
    return None


LANGUAGE = Language("Java", covers, covers, read)


SETTING_UP = frozenset(
    ["Before", "BeforeEach", "BeforeAll", "BeforeClass", "BeforeMethod", "BeforeTest", "BeforeSuite"]
)
FOREIGN = re.compile(r"\b(?:WINDOWS|MAC|AIX|SOLARIS)\b|[Ww]indows|mac os")
_ASSUME = re.compile(
    r"(?<![\w$])(?:(?:Assume|Assumptions)\s*\.\s*)?(?P<name>assume(?:True|False|That|NotNull|NoException)|abort)\s*\("
)
_THROWN = re.compile(
    r"\bthrow\s+new\s+(?:SkipException|TestAbortedException|TestSkippedException|(?:Internal)?AssumptionViolatedException)\b"
)
_EXIT = re.compile(
    r"(?<![\w$.])(?:System\s*\.\s*exit|Runtime\s*\.\s*getRuntime\s*\(\s*\)\s*\.\s*(?:exit|halt))\s*\(\s*0\s*\)"
)
_STATIC = re.compile(r"\bstatic\s*\{")


def body_skips(source: Source, start: int, end: int) -> list[Skip]:
    """What in a method's body keeps a test from running."""
    found = [
        skip for match in _ASSUME.finditer(source.code, start, end) for skip in _assumed(source, start, match)
    ]
    found += skip_calls(source, start, end, _THROWN, FOREIGN)
    found += _exits(source, start, end)
    return found


def _assumed(source: Source, start: int, match: re.Match[str]) -> Iterator[Skip]:
    """An assumption skips where it does not hold; one that asks for a constant always does, or never."""
    condition = enclosing_condition(source, start, match.start())
    asked = [text for text in texts(source, match.end() - 1) if not text.startswith('"')][:1]
    wanted = {"assumeTrue": "true", "assumeFalse": "false"}.get(match["name"], "")
    if wanted and asked == [wanted]:
        return
    reasons = [condition] if condition else []
    if asked and asked[0] not in {"true", "false"} and match["name"] != "abort":
        reasons += asked if wanted == "false" else [f"not ({asked[0]})"]
    name = " ".join(match.group().rstrip("( \t\n").split())
    text = f"{name} if {' and '.join(reasons)}" if reasons else name
    elsewhere = any(FOREIGN.search(a) and (a.startswith("!") or wanted == "false") for a in asked)
    yield Skip(text, source.line(match.start()), not (elsewhere or FOREIGN.search(condition)))


def static_skips(source: Source, start: int, end: int) -> Iterator[Skip]:
    """Exits in a class's static blocks."""
    for found in source.top_level(start, end, _STATIC):
        yield from _exits(source, found.end(), source.closing(found.end() - 1))


def _exits(source: Source, start: int, end: int) -> Iterator[Skip]:
    for found in source.outermost(start, end, _EXIT):
        yield Skip(re.sub(r"\s", "", found.group()), source.line(found.start()))
