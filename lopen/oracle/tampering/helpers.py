"""Helpers in the brace languages: functions that a test calls, and that check in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from lopen.oracle.tampering.braces import texts
from lopen.oracle.tampering.lexing import Source
from lopen.oracle.tampering.suite import EXACT, Case, Check, called, support_cases

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
