"""What the brace languages share: ranges that cannot fail a test, chains of calls, arguments that are always equal."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lopen.test_integrity.lexing import Source
from lopen.test_integrity.suite import EXACT, Case, Check, Kind, Skip, called, support_cases

MAX_DEPTH = 8  # groups in groups, subtests in subtests
_RETURN = re.compile(r"\breturn\b")
_DEAD_IF = re.compile(r"\bif\s*\(?\s*(?:false|0|!true|!1)\s*(?:&&[^{]*)?\)?\s*\{")
_TRY = re.compile(r"\btry\s*(?:\([^{]*\)\s*)?\{")
_CATCH = re.compile(r"\s*catch\s*(?:\((?P<what>[^)]*)\)\s*)?\{")
FAILS = re.compile(r"\bthrow\b|\bfail\w*\s*\(|\bassert|\bexpect\s*\(|\breject\w*\s*\(|\bdone\s*\(")
_CHAINED = re.compile(r"\s*(?:\?\s*)?\.\s*(?P<name>\w+)\s*(?:<[^<>()]*>\s*)?(?P<call>\()?")
_LITERAL = re.compile(r"""^(?:true|false|null|nil|None|undefined|-?[\d._]+\w*|"[^"]*"|'[^']*'|`[^`$]*`)$""")
_CALLS = re.compile(r"\w\s*\(")


@dataclass(frozen=True, slots=True)
class Region:
    """A range whose assertions do not count, and why."""

    start: int
    end: int
    kind: Kind


_Nested = TypeVar("_Nested")


def shallow(items: Iterable[_Nested], span: Callable[[_Nested], tuple[int, int]]) -> list[_Nested]:
    """The items, in order of their start, that lie in at most `MAX_DEPTH` others: no text takes quadratic time."""
    kept: list[_Nested] = []
    around: list[int] = []  # where the items end that are open here
    for item in sorted(items, key=lambda each: span(each)[0]):
        start, end = span(item)
        while around and around[-1] <= start:
            around.pop()
        if len(around) <= MAX_DEPTH:
            kept.append(item)
        around.append(end)
    return kept


def definitions(source: Source, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Matches of a pattern that ends with the opening bracket of a body, but for those nested too deep."""
    matches = pattern.finditer(source.code)
    return shallow(matches, lambda found: (found.start(), source.closing(found.end() - 1)))


def regions(source: Source, start: int, end: int, *, swallowing: re.Pattern[str] | None) -> list[Region]:
    """Ranges of a body that cannot fail its test: behind a top-level return, in `if (false)`, in a try that swallows.

    `swallowing` matches what a catch clause must name to catch failed assertions; None: any catch does.
    """
    return [
        *_after_return(source, start, end),
        *_dead(source, start, end),
        *_swallowed(source, start, end, swallowing),
    ]


def _after_return(source: Source, start: int, end: int) -> Iterator[Region]:
    for found in source.top_level(start, end, _RETURN):
        stop = statement_end(source, found.end(), end)
        if source.code[stop:end].strip(" \t\r\n;"):
            yield Region(stop, end, "unreachable")
        return


def statement_end(source: Source, at: int, end: int) -> int:
    """The end of the statement at `at`: a semicolon, or a line's end with nothing open and nothing to follow on."""
    while at < end:
        sign = source.code[at]
        if sign in "([{":
            at = source.closing(at)
        elif sign == ";":
            return at + 1
        elif sign == "\n" and not re.match(r"\s*[.?:&|+*/,)\]]", source.code[at:end]):
            return at
        at += 1
    return end


def _dead(source: Source, start: int, end: int) -> Iterator[Region]:
    for found in _DEAD_IF.finditer(source.code, start, end):
        yield Region(found.end() - 1, source.closing(found.end() - 1), "unreachable")


def _swallowed(source: Source, start: int, end: int, swallowing: re.Pattern[str] | None) -> Iterator[Region]:
    for found in _TRY.finditer(source.code, start, end):
        close = source.closing(found.end() - 1)
        after = close + 1
        while catch := _CATCH.match(source.code, after):
            catch_close = source.closing(catch.end() - 1)
            caught = swallowing is None or bool(swallowing.search(catch["what"] or ""))
            if caught and not FAILS.search(source.code[catch.end() : catch_close]):
                yield Region(found.end() - 1, close, "swallowed")
            after = catch_close + 1


def kind_at(at: int, found: Iterable[Region]) -> Kind:
    """Whether an assertion at a position can fail its test."""
    return next((region.kind for region in found if region.start <= at < region.end), "real")


def chain(source: Source, at: int) -> tuple[list[tuple[str, int | None]], int]:
    """The `.name(…)` links that follow a position: names with their opening brackets, and where the chain ends."""
    links: list[tuple[str, int | None]] = []
    while found := _CHAINED.match(source.code, at):
        opening = found.end() - 1 if found["call"] else None
        links.append((found["name"], opening))
        at = source.closing(opening) + 1 if opening is not None else found.end()
    return links, at


def texts(source: Source, opening: int) -> list[str]:
    """The arguments of a call as text."""
    return [source.span(start, stop) for start, stop in source.arguments(opening)]


def is_literal(text: str) -> bool:
    """Whether a text is one literal value."""
    return bool(_LITERAL.match(text))


def always_true(condition: str) -> bool:
    """Whether a condition holds whatever the code under test does."""
    text = condition.strip()
    if text in {"true", "1", "!false", "!0"}:
        return True
    if any(part.strip() == "true" for part in text.split("||")):
        return True
    both = re.match(r"^(.+?)\s*(?:===?|>=|<=)\s*(.+)$", text)
    return bool(both) and always_equal(both[1].strip(), both[2].strip())  # type: ignore[index]  # both matched


def always_equal(left: str, right: str) -> bool:
    """Whether two expressions are equal because they are the same text. Calls may differ from call to call."""
    return left == right and (is_literal(left) or not _CALLS.search(left))


def chosen(checks: Iterable[tuple[int, Check]], idle: Sequence[Region]) -> tuple[Check, ...]:
    """Checks with their positions, in order, each with the kind that its place gives it."""
    ordered = sorted(checks, key=lambda pair: pair[0])
    return tuple(_placed(check, kind_at(at, idle)) for at, check in ordered)


def _placed(check: Check, kind: Kind) -> Check:
    if kind == "real" or check.kind != "real":
        return check
    return Check(check.text, check.subject, check.rank, check.line, kind)


def skip_calls(
    source: Source, start: int, end: int, pattern: re.Pattern[str], foreign: re.Pattern[str]
) -> tuple[Skip, ...]:
    """Calls in a body that skip its test, with the `if` that each stands under."""
    found = []
    for match in pattern.finditer(source.code, start, end):
        condition = enclosing_condition(source, start, match.start())
        name = " ".join(match.group().rstrip("( \t\n").split())
        text = f"{name} if {condition}" if condition else name
        found.append(Skip(text, source.line(match.start()), not foreign.search(condition)))
    return tuple(found)


_SHORT_IF = re.compile(r"\bif\s*\((?P<condition>[^;{}]*)\)\s*\Z")


def enclosing_condition(source: Source, start: int, at: int) -> str:
    """The condition of the innermost `if` block around a position, after `start`; empty where there is none."""
    short = _SHORT_IF.search(source.code, max(start, at - 200), at)
    if short:
        return source.span(short.start("condition"), short.end("condition"))
    blocks = source.conditions
    last = bisect_left(blocks, (at, 0, ""))
    around = (b for b in reversed(blocks[bisect_left(blocks, (start, 0, "")) : last]) if b[1] > at)
    _, _, inner = next(around, (0, 0, ""))
    return inner.removeprefix("(").removesuffix(")") if inner.startswith("(") else inner


Helpers = Mapping[str, Sequence[Check]]
"""What each helper checks, by its name."""


def helper_calls(
    source: Source,
    start: int,
    end: int,
    pattern: re.Pattern[str],
    helpers: Helpers,
    *,
    counts: Callable[[str], object] = lambda _: False,
    subject: int = 0,
) -> Iterator[tuple[int, Check]]:
    """The checks that calls stand for, each with its position. `pattern` has a group `name`, then a bracket.

    A call of what is none of the `helpers` is one check where its name `counts`. The argument number `subject` is
    what is checked.
    """
    for found in pattern.finditer(source.code, start, end):
        at, name = found.start(), found["name"]
        if name in helpers:
            yield from ((at, each) for each in called(_call(source, found, subject), helpers[name]))
        elif counts(name):
            yield at, _call(source, found, subject)


def _call(source: Source, found: re.Match[str], subject: int) -> Check:
    """A call as one check, given the benefit of the doubt."""
    opening = source.code.index("(", found.end("name"))
    text = source.span(found.start(), source.closing(opening) + 1)
    arguments = texts(source, opening)
    checked = arguments[subject] if subject < len(arguments) else text
    return Check(text, checked, EXACT, source.line(found.start()))


def helper_cases(helpers: Helpers, tests: Sequence[Case]) -> list[Case]:
    """The helpers of a file as cases of their own; what is one of its `tests` is none."""
    names = {case.short for case in tests}
    return support_cases({name: checks for name, checks in helpers.items() if name not in names})
