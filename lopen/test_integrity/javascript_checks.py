"""What a JavaScript test checks: `expect` chains, `assert` calls, the `t` of node and tap, helpers by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lopen.test_integrity.braces import (
    FAILS,
    Helpers,
    always_equal,
    always_true,
    chain,
    definitions,
    helper_calls,
    shallow,
    skip_calls,
    statement_end,
    texts,
)
from lopen.test_integrity.lexing import Source
from lopen.test_integrity.suite import CLOSE, EXACT, LOOSE, PARTIAL, PRESENT, Check, Skip, ranks

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


BODY_SKIP = re.compile(
    r"(?<![\w$])(?:this|t|ctx|context|test|it|testInfo)\s*\.\s*(?:skip|todo|fixme)\s*\(|(?<![\w$.])pending\s*\("
)
FOREIGN = re.compile(r"===?\s*[\"'](?:win32|darwin|aix|freebsd|sunos)|!==?\s*[\"']linux|\b[iI]sWin|\bisMac")
_HOOK = re.compile(r"(?<![\w$.])(?:(?:test|it)\s*\.\s*)?(?P<name>before(?:Each|All)?|suiteSetup|setup)\s*\(")
_EXIT = re.compile(r"(?<![\w$.])(?:process|Deno)\s*\.\s*(?:exit|reallyExit)\s*\(\s*(?:0\s*)?\)")
_BOUND = re.compile(
    r"(?<![\w$.])(?:(?:const|let|var)\s+|(?:globalThis|global|window)\s*\.\s*)?"
    r"(?P<name>it|test|describe|context|suite|specify|expect)\s*(?::[^=;{]{1,80})?=(?![=>])\s*"
    r"(?P<value>(?P<skipping>x(?:it|test|describe|context)\b|(?:it|test|describe|context|suite|specify)\s*\.\s*(?:skip|todo|fixme)\b)"
    r"|(?:async\s+)?(?:function\b|\(|\w+\s*=>))"
)
_DECLARED = re.compile(r"(?<![\w$.])function\s+(?P<name>it|test|describe|context|suite|specify|expect)\s*\(")
_HEAD = re.compile(
    r"(?:async\s+)?(?:function\b[^(]*)?\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?::[^={]{1,80})?(?:=>|(?=\{))|(?:async\s+)?\w+\s*=>"
)
_CALLS = re.compile(r"[\w$)\]]\s*\(")


@dataclass(frozen=True, slots=True)
class Hook:
    """A set-up hook that skips: where it stands, and the skips in it."""

    at: int
    skips: tuple[Skip, ...]


def skipping_hooks(source: Source) -> list[Hook]:
    """The hooks that skip what they set up for."""
    found = []
    hooks = shallow(_HOOK.finditer(source.code), lambda m: (m.start(), source.closing(m.end() - 1)))
    for match in hooks:
        opening = match.end() - 1
        skips = skip_calls(source, opening, source.closing(opening), BODY_SKIP, FOREIGN)
        if skips:
            named = [Skip(f"{match['name']}'s {s.text}", s.line, s.certain) for s in skips]
            found.append(Hook(match.start(), tuple(named)))
    return found


def exits(source: Source, start: int, end: int) -> Iterator[Skip]:
    """Exits with success that nothing stands around: they end the whole run."""
    for found in source.outermost(start, end, _EXIT):
        yield Skip(" ".join(found.group().split()), source.line(found.start()))


def other_words(source: Source) -> dict[str, Skip]:
    """Words of the test framework that a file binds to something that runs, or checks, nothing."""
    found: dict[str, Skip] = {}
    for match in source.top_level(0, len(source.code), _BOUND):
        name, line = match["name"], source.line(match.start())
        if match["skipping"]:
            found[name] = Skip(f"{name} bound to {match['skipping']}", line)
        elif _does_nothing(source, match.start("value"), name):
            found[name] = Skip(f"a {name} of its own, which does nothing", line)
    for match in source.top_level(0, len(source.code), _DECLARED):
        if _does_nothing(source, match.start(), match["name"]):
            line = source.line(match.start())
            found[match["name"]] = Skip(f"a {match['name']} of its own, which does nothing", line)
    return found


def _does_nothing(source: Source, at: int, name: str) -> bool:
    """Whether the function at a position calls nothing; for `expect`, whether nothing in it can fail."""
    written = source.code[at : statement_end(source, at, len(source.code))]
    head = _HEAD.match(written)
    if not head:
        return False  # a value in brackets
    pattern = FAILS if name == "expect" else _CALLS
    return not pattern.search(written, head.end())
