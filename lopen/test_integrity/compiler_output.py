"""Runs of a test command in which the compiler, and no test, refused a mutant (docs/reference/mutation.md)."""

from __future__ import annotations

import re
from functools import cache

from lopen.test_integrity.mutants import language_of

# Only the lines that a compiler or its build tool writes: what a test or the program prints must not look like one
_COMPILER = {
    "go": r"^FAIL[\t ]+\S+ \[(?:build|setup) failed\]\s*$",
    "rust": r"^error\[E\d+\]: |^error: could not compile `",
    "java": r"^\[ERROR\] COMPILATION ERROR|^> Compilation failed; see the compiler|^> Task :(?:\S+:)?compile\w*Java FAILED"
    r"|^[ \t]*(?:\[javac\] )?\S+\.java:\d+: error: ",
    "typescript": r"^[^\n]*\.[cm]?tsx?(?:\(\d+,\d+\):|:\d+:\d+ -) error TS\d+: |^(?:error: )?TS\d+ \[ERROR\]: ",
}
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_COMPILER["tsx"] = _COMPILER["typescript"]


@cache
def _compiler(language: str) -> re.Pattern[str] | None:
    pattern = _COMPILER.get(language)
    return re.compile(pattern, re.MULTILINE) if pattern else None


def did_not_compile(path: str, output: str) -> bool:
    """Return whether a run failed because its compiler refused the mutant: then the tests have noticed nothing."""
    pattern = _compiler(language_of(path) or "")
    return pattern is not None and pattern.search(_COLOUR.sub("", output)) is not None
