"""Files by which a test runner passes over a whole folder; whether tests really run no longer, two runs tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lopen.oracle.verdict import Finding
from lopen.test_integrity.suite import FileChange

_TESTS = frozenset({"tests", "test"})


def passed_over_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a warning for each new or deleted file of this kind."""
    gone = {c.path for c in changes if c.after is None}
    for change in changes:
        path = PurePosixPath(change.path)
        folder = str(path.parent)
        added = change.before is None
        if added and (path.name == "pyvenv.cfg" or path.parts[-2:] == ("conda-meta", "history")):
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
