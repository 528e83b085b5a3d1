"""Rust tests: functions with a test attribute, in any file; `#[ignore]`, `cfg`, modules that are no longer compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lopen.test_integrity.braces import (
    Helpers,
    Region,
    always_equal,
    always_true,
    chosen,
    definitions,
    helper_calls,
    helper_cases,
    regions,
    shallow,
    texts,
)
from lopen.test_integrity.lexing import Source, lex
from lopen.test_integrity.suite import (
    CLOSE,
    EXACT,
    LOOSE,
    PARTIAL,
    Case,
    Check,
    Language,
    Skip,
    Suite,
    numbered,
)

_ATTRIBUTE = re.compile(r"#(?P<inner>!?)\[")
_FUNCTION = re.compile(
    r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+|unsafe\s+|const\s+)*fn\s+(?P<name>\w+)[^{;]{0,2000}\{"
)
_MODULE = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(?P<name>\w+)\s*(?P<open>[{;])")
_ANY_FUNCTION = re.compile(r"\bfn\s+(?P<name>\w+)[^{;]{0,2000}\{")
_ANY_MODULE = re.compile(r"\bmod\s+(?P<name>\w+)\s*\{")
_TEST = re.compile(r"^(?:[\w:]*\btest|rstest|test_case|quickcheck|[\w:]+_test)(?:\(|$)")
_MACRO = re.compile(
    r"\b(?P<name>(?:prop_|debug_)?assert\w*|panic|unreachable|unimplemented)!\s*(?P<open>[(\[{])"
)
_HELPER = re.compile(r"(?<![\w.!])(?:\w+::)*(?P<name>\w+)\s*\(")
_NAMED_HELPER = re.compile(r"^(?:assert|check|verify|expect)_\w+$")
_CATCH = re.compile(r"\bcatch_unwind\s*\(")
_HERE = re.compile(
    r"^(?:test|unix|target_os = \"linux\"|not\((?:windows|target_os = \"(?:windows|macos)\"|miri|loom)\)|all\(test\))$"
)
_SHOULD_PANIC = re.compile(r"should_panic\b|cfg_attr\(.*,\s*should_panic\b")
_EXIT = re.compile(r"\bprocess::exit\s*\(\s*0\s*\)")
_NEVER = re.compile(r"^cfg\((?:any\(\)|not\((?:all\(\)|test)\)|false|FALSE)\)$")
_FOREIGN = re.compile(r"windows|macos|wasm|miri|loom")
_RANKS = {"assert_eq": EXACT, "assert_matches": CLOSE, "assert_ne": LOOSE, "assert": LOOSE}


@dataclass(frozen=True, slots=True)
class _Attributes:
    """A run of attributes: their texts, where they start, and where what they stand before starts."""

    texts: tuple[tuple[str, int], ...]
    start: int
    end: int


def read(files: Mapping[str, str]) -> dict[str, Suite]:
    """The suites, be they a module's own tests or integration tests. Files without attributes have none."""
    return {path: _suite(path, lex(text, "rust")) for path, text in files.items() if "#[" in text}


def _suite(path: str, source: Source) -> Suite:
    runs = shallow(_attribute_runs(source), lambda run: (run.start, _end(source, run)))
    whole_file = tuple(
        s for run in runs for t, at in run.texts if t.startswith("!") for s in _cfg(t[1:], source.line(at))
    )
    modules = [(m, source.closing(m.end() - 1)) for m in _ANY_MODULE.finditer(source.code)]
    helpers = _helpers(path, source, modules)
    conditions = {}
    left_out: list[Skip] = []
    for run in runs:
        module = _MODULE.match(source.code, run.end)
        if module:
            conditions[module["name"]] = tuple(s for t, at in run.texts for s in _cfg(t, source.line(at)))
            left_out += _left_out(source, run, module)
    cases = []
    for run in runs:
        function = _FUNCTION.match(source.code, run.end)
        if function and any(_TEST.match(t) for t, _ in run.texts):
            around = [m["name"] for m, close in modules if m.start() < run.start < close]
            inherited = tuple(s for name in around for s in conditions.get(name, ()))
            cases.append(_case(source, run, function, around, (*whole_file, *inherited), helpers))
    return Suite(numbered([*cases, *helper_cases(helpers, cases)]), tuple(left_out))


def _left_out(source: Source, run: _Attributes, module: re.Match[str]) -> Iterator[Skip]:
    """A file of tests that its module's declaration no longer compiles."""
    if module["open"] == ";" and re.search(r"(?:^|_)tests?(?:_|$)", module["name"]):
        for text, at in run.texts:
            for skip in _cfg(text, source.line(at)):
                yield Skip(f"{skip.text} on mod {module['name']}", skip.line, bool(_NEVER.match(text)))


def _end(source: Source, run: _Attributes) -> int:
    """Where what the attributes stand before ends."""
    found = _FUNCTION.match(source.code, run.end) or _MODULE.match(source.code, run.end)
    return source.closing(found.end() - 1) if found and found.group().endswith("{") else run.end


def _attribute_runs(source: Source) -> Iterator[_Attributes]:
    at = 0
    while found := _ATTRIBUTE.search(source.code, at):
        start, attributes = found.start(), []
        following: re.Match[str] | None = found
        while following:
            close = source.closing(following.end() - 1)
            attributes.append((following["inner"] + source.span(following.end(), close), following.start()))
            at = close + 1
            following = re.compile(r"\s*#(?P<inner>!?)\[").match(source.code, at)
        yield _Attributes(tuple(attributes), start, at)


def _cfg(attribute: str, line: int) -> Iterator[Skip]:
    """A condition for compiling, other than being compiled as a test here."""
    if attribute.startswith("cfg(") and not _HERE.match(attribute[4:-1].strip()):
        yield Skip(f"#[{attribute}]", line, not _FOREIGN.search(attribute))


def _case(
    source: Source,
    run: _Attributes,
    function: re.Match[str],
    around: Sequence[str],
    inherited: tuple[Skip, ...],
    helpers: Helpers,
) -> Case:
    start, end = function.end(), source.closing(function.end() - 1)
    line = source.line(function.start("name"))
    idle = [*regions(source, start, end, swallowing=None), *_caught(source, start, end)]
    checks = (*_panics(run, line), *chosen(_checks(source, start, end, helpers), idle))
    turned = next((f"#[{t}]" for t, _ in run.texts if _SHOULD_PANIC.match(t)), "")
    rows = sum(1 for t, _ in run.texts if re.match(r"(?:test_)?case\b", t)) or None
    return Case(
        "::".join([*around, function["name"]]),
        line,
        " ".join([*(t for t, _ in run.texts), source.span(start, end)]),
        checks,
        (*inherited, *_skips(source, run), *_exits(source, start, end)),
        rows,
        not source.code[start:end].strip(),
        turned=turned,
    )


def _skips(source: Source, run: _Attributes) -> Iterator[Skip]:
    for text, at in run.texts:
        line = source.line(at)
        if re.match(r"ignore\b", text):
            yield Skip("#[ignore]", line)
        elif text.startswith("cfg_attr(") and re.search(r"\bignore\b|,\s*cfg\(", text):
            yield Skip(f"#[{text}]", line, not _FOREIGN.search(text))
        else:
            yield from _cfg(text, line)


def _exits(source: Source, start: int, end: int) -> Iterator[Skip]:
    """Exits with success that nothing stands around: they end the run of all tests."""
    for found in source.outermost(start, end, _EXIT):
        yield Skip("process::exit(0)", source.line(found.start()))


def _panics(run: _Attributes, line: int) -> Iterator[Check]:
    for text, _ in run.texts:
        if text.startswith("should_panic"):
            yield Check(f"#[{text}]", "a panic", EXACT if "expected" in text else CLOSE, line)


def _caught(source: Source, start: int, end: int) -> Iterator[Region]:
    """`let _ = catch_unwind(…)`: a panic that nobody looks at."""
    for found in _CATCH.finditer(source.code, start, end):
        before = source.code[start : found.start()].rpartition(";")[2]
        if re.search(r"\blet\s+_\w*\s*=|\A\s*(?:std::panic::|panic::)?\Z", before):
            yield Region(found.end() - 1, source.closing(found.end() - 1), "swallowed")


def _checks(source: Source, start: int, end: int, helpers: Helpers) -> Iterator[tuple[int, Check]]:
    for found in _MACRO.finditer(source.code, start, end):
        yield found.start(), _asserted(source, found.start(), found["name"], found.end() - 1)
    yield from helper_calls(source, start, end, _HELPER, helpers, counts=_NAMED_HELPER.match)


def _asserted(source: Source, at: int, name: str, opening: int) -> Check:
    arguments = texts(source, opening)
    text = source.span(at, source.closing(opening) + 1)
    line = source.line(at)
    base = re.sub(r"^(?:prop_|debug_)", "", name)
    subject = arguments[0] if arguments else ""
    if base == "assert_eq" and len(arguments) > 1 and always_equal(arguments[0], arguments[1]):
        return Check(text, subject, 0, line, "vacuous")
    if base == "assert" and arguments:
        if always_true(subject):
            return Check(text, subject, 0, line, "vacuous")
        if re.search(r"[^=!<>]==[^=]", subject) and "||" not in subject:
            return Check(text, subject.split("==")[0].strip(), EXACT, line)
        if re.match(r"(?:std::)?matches!", subject):
            return Check(text, subject, PARTIAL, line)
    return Check(text, subject, _RANKS.get(base, PARTIAL), line)


def _helpers(
    path: str, source: Source, modules: Sequence[tuple[re.Match[str], int]]
) -> dict[str, tuple[Check, ...]]:
    """Functions among the tests, with what they assert. The code under test may assert too, and is no helper."""
    of_tests = bool(re.search(r"(?:^|/)tests?(?:/|\.rs$)", path))
    found: dict[str, tuple[Check, ...]] = {}
    for match in definitions(source, _ANY_FUNCTION):
        around = [m["name"] for m, close in modules if m.start() < match.start() < close]
        if of_tests or any("test" in name for name in around):
            close = source.closing(match.end() - 1)
            found[match["name"]] = tuple(c for _, c in _checks(source, match.end(), close, {}))
    return found


LANGUAGE = Language("Rust", lambda path: path.endswith(".rs"), lambda path: path.endswith(".rs"), read)
