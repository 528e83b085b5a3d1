"""What keeps Java tests from running from within or from their set-up: assumptions, skip exceptions, exits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lopen.oracle.tampering.braces import enclosing_condition, skip_calls, texts
from lopen.oracle.tampering.lexing import Source
from lopen.oracle.tampering.suite import Skip

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
