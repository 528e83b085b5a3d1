"""Java tests: JUnit 3, 4 and 5, TestNG; assertions of JUnit, AssertJ, Hamcrest, Truth and Mockito."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lopen.oracle.tampering.braces import (
    Region,
    always_equal,
    always_true,
    chain,
    chosen,
    definitions,
    is_literal,
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
_JUNIT3 = re.compile(r"\bpublic\s+void\s+(?P<name>test\w*)\s*\(\s*\)\s*(?:throws\s+[\w., ]+)?\{")
_TESTS = frozenset({"Test", "ParameterizedTest", "RepeatedTest", "TestFactory", "TestTemplate", "Property"})
_SKIPPING = frozenset({"Disabled", "Ignore"})
_CONDITIONAL = re.compile(r"^(?:Disabled|Enabled)(?:On|If|For)\w*$")
_FOREIGN = re.compile(r"\b(?:WINDOWS|MAC|AIX|SOLARIS)\b|[Ww]indows|mac os")
_ASSERT = re.compile(
    r"(?<![\w$])(?:(?:Assert|Assertions|Assertion|Truth|MatcherAssert)\s*\.\s*)?(?P<name>assert\w*|fail|expectThrows)\s*\("
)
_MOCK = re.compile(r"(?<![\w$])(?:Mockito\s*\.\s*|\w+\s*\.\s*)?(?P<name>verify\w*|expectMsg\w*)\s*\(")
_EXPECT = re.compile(r"\.\s*(?P<name>andExpect|expectStatus|expectBody|expectNext\w*)\s*\(")
_ASSUME = re.compile(
    r"(?<![\w$])(?:(?:Assume|Assumptions)\s*\.\s*)?(?:assume(?:True|False|That|NotNull|NoException)|abort)\s*\("
)
_SWALLOWING = re.compile(r"\b(?:Throwable|AssertionError|AssertionFailedError|Error)\b")
_FUNCTION = re.compile(r"\b(?:void|boolean|[A-Z]\w*)\s+(?P<name>\w+)\s*\([^)]*\)\s*(?:throws\s+[\w., ]+)?\{")
_CALLED = re.compile(r"(?<![\w$.])(?:this\s*\.\s*)?(?P<name>[a-z]\w*)\s*\(")
_RANKS = {
    **dict.fromkeys(
        ["assertEquals", "assertSame", "assertNull", "assertArrayEquals", "assertIterableEquals"], EXACT
    ),
    **dict.fromkeys(["assertLinesMatch", "assertThrowsExactly"], CLOSE),
    **dict.fromkeys(["assertThrows", "expectThrows", "verifyNoMoreInteractions"], CLOSE),
    **dict.fromkeys(
        ["assertTrue", "assertFalse", "assertNotEquals", "assertNotSame", "assertInstanceOf"], LOOSE
    ),
    **dict.fromkeys(["assertNotNull", "assertDoesNotThrow"], PRESENT),
}
_CHAINED = {
    **dict.fromkeys(
        [
            "isEqualTo",
            "isSameAs",
            "containsExactly",
            "isNull",
            "isZero",
            "isOne",
            "hasMessage",
            "isEmpty",
            "isTrue",
            "isFalse",
        ],
        EXACT,
    ),
    **dict.fromkeys(
        [
            "isCloseTo",
            "isWithin",
            "containsExactlyInAnyOrder",
            "hasSize",
            "isInstanceOf",
            "isExactlyInstanceOf",
        ],
        CLOSE,
    ),
    **dict.fromkeys(["isNotEqualTo", "isNotEmpty", "isNotBlank", "isNotZero", "doesNotContain"], LOOSE),
    **dict.fromkeys(["isNotNull", "isPresent", "isNotSameAs"], PRESENT),
}


@dataclass(frozen=True, slots=True)
class _Annotation:
    """An annotation: its last name, its arguments as text, where its bracket opens, where it starts."""

    name: str
    arguments: str
    opening: int | None
    start: int


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
    helpers = _helpers(list(sources.values()))
    return {path: _suite(source, helpers) for path, source in sources.items()}


def _suite(source: Source, helpers: Mapping[str, Sequence[Check]]) -> Suite:
    classes = [(m, source.closing(m.end() - 1)) for m in _ANY_CLASS.finditer(source.code)]
    marks: dict[str, tuple[Skip, ...]] = {}
    cases = []
    seen = set()
    for run, end in shallow(_annotated(source), lambda found: (found[0][0].start, _end(source, found[1]))):
        owner = _CLASS.match(source.code, end)
        if owner:
            marks[owner["name"]] = tuple(_skips(source, run))
            continue
        method = _METHOD.match(source.code, end)
        if method and any(a.name in _TESTS for a in run):
            seen.add(method.end())
            cases.append(_case(source, run, method, _around(classes, method.start("name")), marks, helpers))
    for method in definitions(source, _JUNIT3):
        around = _around(classes, method.start())
        if method.end() not in seen and any("TestCase" in m["heritage"] for m in around):
            cases.append(_case(source, (), method, around, marks, helpers))
    return Suite(numbered([*cases, *support_cases(_untested(_helpers([source]), cases))]))


def _untested(helpers: Mapping[str, Sequence[Check]], cases: Sequence[Case]) -> dict[str, Sequence[Check]]:
    tests = {case.short for case in cases}
    return {name: checks for name, checks in helpers.items() if name not in tests}


def _end(source: Source, at: int) -> int:
    """Where the class or method that starts at `at` ends."""
    found = _CLASS.match(source.code, at) or _METHOD.match(source.code, at)
    return source.closing(found.end() - 1) if found else at


def _around(classes: Sequence[tuple[re.Match[str], int]], at: int) -> list[re.Match[str]]:
    return [m for m, close in classes if m.start() < at < close]


def _annotated(source: Source) -> Iterator[tuple[tuple[_Annotation, ...], int]]:
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
    helpers: Mapping[str, Sequence[Check]],
) -> Case:
    start, end = method.end(), source.closing(method.end() - 1)
    line = source.line(method.start("name"))
    idle: list[Region] = regions(source, start, end, swallowing=_SWALLOWING)
    skips = [skip for owner in around for skip in marks.get(owner["name"], ())]
    skips += _skips(source, run)
    skips += skip_calls(source, start, end, _ASSUME, _FOREIGN)
    annotations = " ".join(f"@{a.name}({a.arguments})" for a in run)
    return Case(
        "::".join([*(owner["name"] for owner in around), method["name"]]),
        line,
        f"{annotations} {source.span(start, end)}",
        (*_expected(run, line), *chosen(_checks(source, start, end, helpers), idle)),
        tuple(skips),
        _rows(source, run),
        not source.code[start:end].strip(),
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
    return bool(_FOREIGN.search(annotation.arguments)) and "LINUX" not in annotation.arguments


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


def _checks(
    source: Source, start: int, end: int, helpers: Mapping[str, Sequence[Check]]
) -> Iterator[tuple[int, Check]]:
    for found in _ASSERT.finditer(source.code, start, end):
        if found["name"] not in helpers:
            yield found.start(), _asserted(source, found.start(), found["name"], found.end() - 1)
    for pattern in (_MOCK, _EXPECT):
        for found in pattern.finditer(source.code, start, end):
            _, stop = chain(source, source.closing(found.end() - 1) + 1)
            text = source.span(found.start(), stop)
            yield found.start(), Check(text, found["name"], PARTIAL, source.line(found.start()))
    for found in _CALLED.finditer(source.code, start, end):
        if behind := helpers.get(found["name"]):
            arguments = texts(source, found.end() - 1)
            text = source.span(found.start(), source.closing(found.end() - 1) + 1)
            check = Check(text, arguments[0] if arguments else text, EXACT, source.line(found.start()))
            yield from ((found.start(), each) for each in called(check, behind))


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


def _helpers(sources: Sequence[Source]) -> dict[str, tuple[Check, ...]]:
    found: dict[str, tuple[Check, ...]] = {}
    for source in sources:
        for match in definitions(source, _FUNCTION):
            close = source.closing(match.end() - 1)
            found[match["name"]] = tuple(c for _, c in _checks(source, match.end(), close, {}))
    return found


LANGUAGE = Language("Java", covers, covers, read)
