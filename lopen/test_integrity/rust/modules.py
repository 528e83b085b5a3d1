"""Rust files that are not compiled: modules that nothing declares any more, and tests moved to files that nothing declares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_DECLARED = re.compile(
    r"^[ \t]*(?P<test>#\[cfg\(test\)\]\s*)?(?:pub(?:\([^)\n]*\))?[ \t]+)?mod[ \t]+(?P<name>\w+)[ \t]*(?P<end>[;{])",
    re.MULTILINE,
)
_NAMED_TEST = re.compile(r"(?:^|_)tests?(?:_|$)")
_TEST = re.compile(r"^\s*#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck)\b", re.MULTILINE)
_ROOT = re.compile(  # files that cargo compiles without a declaration
    r"(?:^|/)(?:lib|main|build)\.rs$|(?:^|/)(?:src/bin|tests|benches|examples)/(?:[^/]+|[^/]+/main)\.rs$"
)


def module_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield an error for each module of tests that is there and no longer compiled."""
    ours = [change for change in changes if change.path.endswith(".rs")]
    if not ours:
        return
    declared = {name for change in ours for name, _ in _declarations(change.after)}
    gone = {_stem(change.path) for change in ours if change.after is None}
    for change in ours:
        kept = {name for name, _ in _declarations(change.after)}
        for name, of_tests in _declarations(change.before):
            if of_tests and name not in kept | declared | gone and change.after is not None:
                yield Finding("error", f"no longer compiled: mod {name}, a module of tests", change.path)
    if not any(len(_tests(change.before)) > len(_tests(change.after)) for change in ours):
        return
    manifests = "".join(change.after or "" for change in changes if change.path.endswith((".toml", ".rs")))
    for change in ours:
        if change.before is None and _tests(change.after) and not _ROOT.search(change.path):
            name = PurePosixPath(change.path).name
            if _stem(change.path) not in declared and not re.search(
                rf"path\s*=\s*\"[^\"\n]*{name}\"", manifests
            ):
                message = f"no module declares this file (`mod {_stem(change.path)};`), so that its tests are not compiled"
                yield Finding("error", message, change.path)


def _declarations(text: str | None) -> Iterator[tuple[str, bool]]:
    """Yield the modules that a text declares, and whether each is one of tests."""
    for found in _DECLARED.finditer(text or ""):
        of_tests = bool(found["test"] or _NAMED_TEST.search(found["name"]))
        yield found["name"], of_tests and found["end"] == ";"


def _stem(path: str) -> str:
    file = PurePosixPath(path)
    return file.parent.name if file.stem == "mod" else file.stem


def _tests(text: str | None) -> list[str]:
    return _TEST.findall(text or "")
