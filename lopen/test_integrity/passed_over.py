"""Files by which tests run for less: what a runner passes over as a whole, and tables of data that lost rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_SUREFIRE = re.compile(r"/(?:Test\w*|\w*(?:Test|Tests|TestCase|IT|ITCase))\.java$")
_DATA = re.compile(r"(?:^|/)(?:tests?|spec|testdata|fixtures)/.*\.(?:csv|tsv|jsonl|ndjson)$")
_TESTS = frozenset({"tests", "test"})


def passed_over_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a warning for each new or deleted file of this kind."""
    gone = {c.path for c in changes if c.after is None}
    tests = {path.rpartition("/")[2] for path in gone if "src/test/" in path}
    for change in changes:
        if lost := _lost_rows(change):
            yield Finding("warning", f"the data that tests read has {lost} rows less", change.path)
        path = PurePosixPath(change.path)
        folder = str(path.parent)
        added = change.before is None
        if added and path.name in tests and "src/main/" in change.path:
            what = "a test class moved to the program, where Maven and Gradle run no tests"
            yield Finding("warning", what, change.path)
        elif (
            added
            and _is_misnamed(change)
            and any(p.startswith(f"{folder}/") and _SUREFIRE.search(p) for p in gone)
        ):
            what = (
                "Maven runs the classes Test*, *Test, *Tests and *TestCase, and this new one is none of them"
            )
            yield Finding("warning", what, change.path)
        elif added and (path.name == "pyvenv.cfg" or path.parts[-2:] == ("conda-meta", "history")):
            what = "pytest takes the folder of this file for a virtual environment, and runs no tests in it"
            yield Finding("warning", what, change.path)
        elif added and path.name == "go.mod" and len(path.parts) > 1:
            if not any(
                c.before is None and c.path.startswith(f"{folder}/") and c.path.endswith(".go")
                for c in changes
            ):
                what = "the folder becomes a Go module of its own: `go test ./...` above it runs none of its tests"
                yield Finding("warning", what, change.path)
        elif change.path in gone and path.name == "__init__.py" and _TESTS & set(path.parts[:-1]):
            there = (
                c.path.startswith(f"{folder}/") and c.path.endswith(".py") and c is not change
                for c in changes
                if c.after is None
            )
            if not any(there):
                what = "unittest's discovery passes over a folder of tests without this file"
                yield Finding("warning", what, change.path)


def _lost_rows(change: FileChange) -> int:
    """Return how many lines a table in a folder of tests lost, where nothing came in their place."""
    if not change.before or not change.after or not _DATA.search(change.path):
        return 0
    was, now = (Counter(text.split("\n")) for text in (change.before, change.after))
    return 0 if now - was else (was - now).total()


def _is_misnamed(change: FileChange) -> bool:
    java = change.path.endswith(".java") and "src/test/" in change.path
    return (
        java
        and not re.search(r"\babstract\s+class\b|^(?:public )?interface\b", change.after or "", re.MULTILINE)
        and not _SUREFIRE.search(change.path)
        and bool(re.search(r"@(?:\w*Test)\b", change.after or ""))
    )
