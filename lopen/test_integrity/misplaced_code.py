"""Code of the product in files that are named like tests or their support: it has mutants like any other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lopen.test_integrity.paths import looks_like_test
from lopen.test_integrity.suite import FileChange

_IMPORTING = re.compile(r"\.(?:py|[cm]?[jt]sx?)$")


def product_among_tests(changes: Sequence[FileChange]) -> frozenset[str]:
    """Return the files named like tests or their support that changed code imports and no changed test does."""
    source = [c for c in changes if c.after and _IMPORTING.search(c.path)]
    named = [c for c in source if looks_like_test(c.path)]
    code = [c.after or "" for c in source if not looks_like_test(c.path)]
    found = set()
    for change in named if code else ():
        imports = _imports_of(change.path)
        others = [other.after or "" for other in named if other is not change]
        if any(map(imports.search, code)) and not any(map(imports.search, others)):
            found.add(change.path)
    return frozenset(found)


def _imports_of(path: str) -> re.Pattern[str]:
    """Return what finds a statement that imports a file of Python or JavaScript."""
    stem = path.rpartition(".")[0]
    name = re.escape(stem.rpartition("/")[2])
    package, _, module = stem.replace("/", ".").rpartition(".")
    inside = rf"|from[ \t]+{re.escape(package)}[ \t]+import[ \t(]+(?:\w+,[ \t]*)*{name}\b" if package else ""
    python = rf"^[ \t]*(?:(?:from|import)[ \t]+(?:[\w.]*\.)?{re.escape(module)}\b{inside})"
    script = rf"[\"'](?:\.{{1,2}}/)(?:[\w./-]*/)?{name}(?:\.[cm]?[jt]sx?)?[\"']"
    return re.compile(python if path.endswith(".py") else script, re.MULTILINE)
