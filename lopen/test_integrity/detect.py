"""The whole detection: each changed file to its reader, then the comparison, then the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from lopen.test_integrity.compare import Change, MayGo, compare
from lopen.test_integrity.configuration import configuration_findings
from lopen.test_integrity.expected_data import data_findings
from lopen.test_integrity.go import adapter as go
from lopen.test_integrity.java import adapter as java
from lopen.test_integrity.javascript import adapter as javascript
from lopen.test_integrity.javascript.silencing import silencing_findings
from lopen.test_integrity.local_stand_ins import local_stand_in_findings
from lopen.test_integrity.moved_imports import moved_import_findings
from lopen.test_integrity.named_tests import adapter as named_tests
from lopen.test_integrity.passed_over import passed_over_findings
from lopen.test_integrity.paths import looks_like_test
from lopen.test_integrity.python import adapter as python
from lopen.test_integrity.python import tree as python_tree
from lopen.test_integrity.python.doctests import doctest_findings
from lopen.test_integrity.python.hollow_tests import hollow_findings
from lopen.test_integrity.python.names import module_name
from lopen.test_integrity.python.pytest_plugins import plugin_findings
from lopen.test_integrity.python.rebound import rebound_findings
from lopen.test_integrity.python.replaced_framework import replaced_framework_findings
from lopen.test_integrity.python.rewritten import rewritten_findings
from lopen.test_integrity.python.stand_ins import patch_findings, shadowing_findings, stub_findings
from lopen.test_integrity.replaced_runners import replaced_runner_findings
from lopen.test_integrity.rust import adapter as rust
from lopen.test_integrity.rust.modules import module_findings
from lopen.test_integrity.stored_snapshots import snapshot_findings
from lopen.test_integrity.suite import EMPTY, Case, FileChange, Language, Suite
from lopen.test_integrity.syntax import parsed_file
from lopen.test_integrity.under_test import under_test_findings
from lopen.test_integrity.unread import MAX_CHARS, unread_findings
from lopen.verification.findings import Finding

LANGUAGES: tuple[Language, ...] = (
    python.LANGUAGE,
    javascript.LANGUAGE,
    go.LANGUAGE,
    rust.LANGUAGE,
    java.LANGUAGE,
    *named_tests.LANGUAGES,
)
MAX_FINDINGS = 50  # worst first; who reads fifty has read enough

_DEFINITION = re.compile(
    r"\b(?:def|class|func|fn|function|interface|enum|trait|struct|record)[ \t]+(?:\([^)\n]{0,80}\)[ \t]*)?"
    r"([A-Za-z_]\w{2,80})"
    r"|\b(?:const|let|var|type)[ \t]+([A-Za-z_]\w{2,80})"
    r"|\b(?:public|private|protected|static|final)[ \t]+[\w<>\[\],.]{1,80}[ \t]+([a-z]\w{2,80})[ \t]*\("
)


def find_tampering(changes: Sequence[FileChange], may_go: MayGo = lambda path: "") -> tuple[Finding, ...]:
    """Findings about tests deleted, skipped or weakened between the two sides of `changes`, worst first.

    Pure and total: text that does not parse is read as far as it can be, and that is told; so are binary and huge files.
    Where tests of a file `may_go`, their removal is a warning with the reason.
    Tests that are only on the after side are new, and are reported only where they can never fail.
    """
    readable = [c for c in changes if can_be_read(c.before) and can_be_read(c.after)]
    findings: list[Finding] = []
    covered = {language: [c for c in readable if language.covers(c.path)] for language in LANGUAGES}
    sides = {language: read_sides(language, ours) for language, ours in covered.items() if ours}
    for language, read in sides.items():
        others = [case for other, each in sides.items() if other is not language for case in _added(each)]
        findings += compare(read, removed_names(readable), may_go, others)
        if language is python.LANGUAGE:
            findings += _stood_in(covered[language], read, readable)
    findings += configuration_findings(readable)
    findings += [*plugin_findings(readable), *replaced_runner_findings(readable)]
    findings += shadowing_findings(changes)
    findings += replaced_framework_findings(readable)
    findings += [*hollow_findings(readable), *doctest_findings(readable)]
    findings += rebound_findings(readable)
    findings += moved_import_findings(readable)
    findings += silencing_findings(readable)
    findings += snapshot_findings(readable)
    findings += [*passed_over_findings(changes), *data_findings(readable)]
    findings += module_findings(readable)
    tests = frozenset(c.path for c in changes if looks_like_test(c.path))
    findings += under_test_findings(readable, tests)
    findings += unread_findings(changes, tests)
    findings += local_stand_in_findings(changes, tests)
    _forget_files()
    order = {"error": 0, "warning": 1, "info": 2}
    ordered = sorted(dict.fromkeys(findings), key=lambda f: (order[f.severity], f.path or "", f.line or 0))
    return tuple(ordered[:MAX_FINDINGS])


def _added(changes: Sequence[Change]) -> Iterator[Case]:
    """The tests of files that are new."""
    for change in changes:
        if change.before is EMPTY:
            yield from change.after.cases


def _forget_files() -> None:
    """Give back the memory of the syntax trees, which a long session does not need between two changes."""
    for each in (parsed_file, python_tree.parsed, python_tree.nodes, python_tree.unparse):
        each.cache_clear()


def _stood_in(
    ours: Sequence[FileChange], read: Sequence[Change], all_: Sequence[FileChange]
) -> Iterator[Finding]:
    """Python tests whose code is another one than the one they are about."""
    removed = removed_names(all_)
    written = {
        module_name(change.path): frozenset(_defined(change.after or ""))
        for change in all_
        if change.path.endswith(".py") and not looks_like_test(change.path)
    }
    for change, suites in zip(ours, read, strict=True):
        yield from stub_findings(change, suites.before.cases, suites.after.cases, removed)
        yield from patch_findings(change, written)
        yield from rewritten_findings(change, suites.before.cases, suites.after.cases, written)


def can_be_read(text: str | None) -> bool:
    """Return whether a text is neither binary nor too large to be read for tests."""
    return text is None or (len(text) <= MAX_CHARS and "\0" not in text)


def read_sides(language: Language, changes: Sequence[FileChange]) -> list[Change]:
    """Return what a language's reader finds on the two sides of each change."""
    before = language.read({c.path: c.before for c in changes if c.before is not None})
    after = language.read({c.path: c.after for c in changes if c.after is not None})
    return [
        Change(
            change.path,
            *_comparable(language, change, before.get(change.path, EMPTY), after.get(change.path, EMPTY)),
            deleted=change.after is None,
            collected=language.collects(change.path),
        )
        for change in changes
    ]


def _comparable(language: Language, change: FileChange, before: Suite, after: Suite) -> tuple[Suite, Suite]:
    """The two suites, both read coarsely where one of them could only be: what differs is then the text."""
    if before.coarse == after.coarse or change.before is None or change.after is None:
        return before, after
    return language.read_coarsely(change.before), language.read_coarsely(change.after)


def removed_names(changes: Sequence[FileChange]) -> frozenset[str]:
    """Names that the change took out of the code under test: what their tests tested is gone."""
    before: set[str] = set()
    after: set[str] = set()
    for change in changes:
        if not looks_like_test(change.path):
            before.update(_defined(change.before or ""))
            after.update(_defined(change.after or ""))
    return frozenset(before - after)


def _defined(text: str) -> Iterator[str]:
    for found in _DEFINITION.finditer(text):
        yield next(group for group in found.groups() if group)


def tests_by_file(texts: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the names of the tests in each test file of `texts` (path → text), skipped ones marked."""
    found: dict[str, tuple[str, ...]] = {}
    for language in LANGUAGES:
        ours = {path: text for path, text in texts.items() if language.covers(path) and can_be_read(text)}
        for path, suite in language.read(ours).items() if ours else ():
            cases = [case for case in suite.cases if not case.support]
            if cases:
                found[path] = tuple(f"{case.name} (skipped)" if case.skips else case.name for case in cases)
    return found
