"""Python tests read line by line, for text that no parser takes. Coarse: names, skips and assertions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lopen.oracle.tampering.suite import LOOSE, Case, Check, Skip, Suite, numbered

_DEFINITION = re.compile(r"^(?P<indent>[ \t]*)(?:async[ \t]+)?def[ \t]+(?P<name>test\w*)[ \t]*\(")
_CLASS = re.compile(r"^class[ \t]+(?P<name>\w+)")
_ASSERTION = re.compile(
    r"^\s*(?:assert\b|(?:with\s+)?(?:self\.|pytest\.|\w+\.)?_?(?:assert|raises|fail|check|verify)\w*\()"
)
_VACUOUS = re.compile(
    r"^\s*(?:assert\s+(?:True|1|not False|.*\bor True)\s*(?:,.*|#.*)?$|self\.assertTrue\((?:True|1)\))"
)
_SKIP = re.compile(
    r"^\s*(?:@\S*(?:skip|xfail|expectedFailure)\w*|pytest\.(?:skip|xfail)\(|self\.skipTest\(|raise \S*SkipTest)"
)


def read(text: str) -> Suite:
    """The suite, as far as lines tell."""
    lines = text.splitlines()
    cases = []
    owner = ""
    for number, line in enumerate(lines):
        if found := _CLASS.match(line):
            owner = found["name"]
        elif found := _DEFINITION.match(line):
            cases.append(_case(lines, number, found, f"{owner}::" if found["indent"] else ""))
    return Suite(numbered(cases), coarse=True)


def _case(lines: Sequence[str], start: int, found: re.Match[str], owner: str) -> Case:
    body = list(_body(lines, start, len(found["indent"])))
    decorators = list(_decorators(lines, start))
    skips = [Skip(line.strip(), number + 1) for number, line in [*decorators, *body] if _SKIP.match(line)]
    checks = [_check(line.strip(), number + 1) for number, line in body if _ASSERTION.match(line)]
    normalised = "\n".join(line.strip() for _, line in body if line.strip())
    empty = all(line.strip() in {"", "pass", "..."} for _, line in body)
    return Case(owner + found["name"], start + 1, normalised, tuple(checks), tuple(skips), None, empty)


def _body(lines: Sequence[str], start: int, indent: int) -> Iterator[tuple[int, str]]:
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if (
            line.strip()
            and len(line) - len(line.lstrip()) <= indent
            and not line.lstrip().startswith((")", "#"))
        ):
            return
        yield number, line


def _decorators(lines: Sequence[str], start: int) -> Iterator[tuple[int, str]]:
    for number in range(start - 1, -1, -1):
        if not lines[number].lstrip().startswith("@"):
            return
        yield number, lines[number]


def _check(line: str, number: int) -> Check:
    return Check(line, line, LOOSE, number, "vacuous" if _VACUOUS.match(line) else "real")
