"""Go's `TestMain` and `init`: whether a package's tests run at all, and whether their failures count."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lopen.oracle.tampering.braces import enclosing_condition, kind_at, regions
from lopen.oracle.tampering.lexing import Source
from lopen.oracle.tampering.suite import Skip

_FUNCTION = re.compile(
    r"^func\s+(?P<name>TestMain|init)\s*\(\s*(?:(?P<parameter>\w+)\s+\*testing\.M)?\s*\)\s*\{", re.MULTILINE
)
_SUCCESS = re.compile(r"\b(?:os|syscall)\.Exit\s*\(\s*0\s*\)")
_CHOOSING = re.compile(r"\bflag\.Set\s*\(\s*\"test\.(?:run|skip|list)\"")


def main_skips(source: Source) -> Iterator[Skip]:
    """What keeps a package's tests from running, or from failing."""
    for found in _FUNCTION.finditer(source.code):
        start, end = found.end(), source.closing(found.end() - 1)
        name = found["name"]
        if found["parameter"] and not _runs(source, found["parameter"], start, end):
            yield Skip(f"a TestMain that never calls {found['parameter']}.Run()", source.line(found.start()))
        for ending in _SUCCESS.finditer(source.code, start, end):
            condition = enclosing_condition(source, start, ending.start())
            text = f"{name}'s {ending.group()}" + (f" if {condition}" if condition else "")
            yield Skip(text, source.line(ending.start()), not condition)
        for choice in _CHOOSING.finditer(source.bare, start, end):
            yield Skip(f"{name}'s {choice.group()}, …)", source.line(choice.start()))


def _runs(source: Source, parameter: str, start: int, end: int) -> bool:
    """Whether a TestMain's body runs the tests, or hands its parameter to what may."""
    idle = regions(source, start, end, swallowing=None)
    used = re.compile(rf"\b{parameter}\s*\.\s*Run\s*\(|[(,]\s*{parameter}\s*[,)]")
    return any(kind_at(m.start(), idle) == "real" for m in used.finditer(source.code, start, end))
