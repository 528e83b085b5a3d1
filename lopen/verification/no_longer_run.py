"""Errors of the tests that two runs of the test command compare: a test that runs no longer, a new one that never ran."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lopen.verification.compared_tests import ComparedTests, shown
from lopen.verification.findings import Finding
from lopen.verification.syntax import GRAMMAR_OF
from lopen.verification.test_files import ExaminedChange, Unchanged, looks_like_test
from lopen.verification.test_reader import LANGUAGES, TestCase, read_tests
from lopen.verification.test_run import SINGLE, TestRun, in_file, last_part

WAY_OUT = (
    "have the command run them again; where they are to go, a person says so: `lopen approve {module} "
    "--allow-test-removal '{path}'`, or `- **tests-may-go**: {path}` under Skills & Hooks"
)
NEW = (
    "new tests of this change were not reported by `{command}`: {names}; have the command run them, or take out what ends "
    "the run, replaces the runner or hides them; mark a test as skipped that is to run elsewhere alone"
)
NOT_COLLECTED = "`{command}` runs no test of this file: {names}; put them where the command looks for tests"


def no_longer_run(
    change: ExaminedChange,
    compared: ComparedTests,
    before: TestRun | None,
    after: TestRun,
    command: str,
) -> Iterator[Finding]:
    """Yield an error for each file with tests that `before` ran, that `after` does not, and whose place none took.

    Where no run of the base is known, or its names do not tell, the text tells: a test that is gone, or newly skipped.
    """
    base = before or TestRun()
    lost = [case for case in compared.lost if _is_gone(base, after, case)]
    lost += [new for old, new in compared.pairs if _stopped(base, after, old, new)]
    if _names_gone(base, after):
        lost += _in_unchanged_files(base, after, change.unchanged)
    by_path: dict[str, list[str]] = {}
    for case in lost:
        by_path.setdefault(case.path, []).append(case.name)
    for path, names in sorted(by_path.items()):
        text = f"{_numbers(base, after, command)}; run no longer: {shown(list(dict.fromkeys(names)))}"
        if reason := change.may_go(path):
            yield Finding("info", f"{text}. {reason}", path)
        else:
            yield Finding("error", f"{text}; {WAY_OUT.format(module=change.module, path=path)}", path)
    if not by_path and (missing := _fewer(compared, base, after)):
        text = f"{_numbers(base, after, command)}; {missing} tests run no longer, and the runner does not name them"
        if reason := change.may_go(""):
            yield Finding("info", f"{text}. {reason}")
        elif compared.has_data:
            yield Finding("warning", f"{text}: are they rows of data that the change takes away?")
        else:
            yield Finding("error", f"{text}; {WAY_OUT.format(module=change.module, path='**')}")


def not_reported(compared: ComparedTests, after: TestRun, command: str) -> Iterator[Finding]:
    """Yield an error for each file with new tests that the run did not report.

    A file is a warning if no test of its folder ran, or if no runner takes it for a file of tests. The command may
    not look there.
    """
    by_path: dict[str, list[str]] = {}
    for case in compared.gained:
        if case.skip or case.computed or after.ran(case.path, case.name) is not False:
            continue
        helper = not case.expects and not _is_collected(case.path)
        if not helper and not after.reported(case.path, case.name):
            by_path.setdefault(case.path, []).append(case.name)
    for path, names in sorted(by_path.items()):
        if after.knows_folder(path) and _is_collected(path):
            yield Finding("error", NEW.format(command=command, names=shown(names)), path)
        else:
            yield Finding("warning", NOT_COLLECTED.format(command=command, names=shown(names)), path)


_PYTEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests?)\.py$")


def _is_collected(path: str) -> bool:
    """Return False for a Python file that pytest and unittest do not take for a file of tests, if nobody tells them."""
    return not path.endswith(".py") or _PYTEST_FILE.search(path) is not None


def _is_gone(before: TestRun, after: TestRun, case: TestCase) -> bool:
    """Return True if a test that is no longer in the text ran before and runs no longer.

    A runner knows a test by another name where a class inherits it, or where its title is computed.
    """
    ran = None if case.computed else before.ran(case.path, case.name)
    if ran is True:
        return after.ran(case.path, case.name) is not True
    gone = before.single - after.single
    if case.computed and before.single:
        return any(in_file(name, case.path) for name in gone)
    if ran is False:
        new = {last_part(name) for name in after.single - before.single}
        return "::" in case.name and case.short in {last_part(name) for name in gone} - new
    return not case.skip and after.ran(case.path, case.name) is not True


def _stopped(before: TestRun, after: TestRun, old: TestCase, new: TestCase) -> bool:
    """Return True if the test ran, is still in the text and runs no longer, under its old name neither."""
    ran_before = None if old.computed else before.ran(old.path, old.name)
    runs = None if new.computed else after.ran(new.path, new.name, moved=old.path != new.path)
    if ran_before and not new.computed and _is_silent(before, after):
        return True
    if ran_before is None or runs is None:
        return bool(new.skip) and not old.skip and ran_before is not False and runs is not True
    return ran_before and not runs and after.ran(old.path, old.name) is not True


def _is_silent(before: TestRun, after: TestRun) -> bool:
    """Return True if the run names no single test any more, and tells of no more tests than it named before."""
    kinds = SINGLE & before.names.keys()
    return bool(kinds) and not SINGLE & after.names.keys() and (after.count or 0) < (before.count or 1)


def _names_gone(before: TestRun, after: TestRun) -> bool:
    return any(set(names) - set(after.names.get(kind, ())) for kind, names in before.names.items())


def _in_unchanged_files(before: TestRun, after: TestRun, unchanged: Unchanged) -> Iterator[TestCase]:
    """Yield the tests that run no longer, of files that the change does not touch."""

    def wanted(path: str) -> bool:
        language = LANGUAGES.get(GRAMMAR_OF.get(path.rpartition(".")[2], ""))
        return language is not None and (language.anywhere or looks_like_test(path))

    for path, text in unchanged(wanted).items():
        for case in read_tests(path, text).cases:
            if case.computed or before.ran(path, case.name) is not True:
                continue
            if after.ran(path, case.name) is False or _is_silent(before, after):
                yield case


def _fewer(compared: ComparedTests, before: TestRun, after: TestRun) -> int:
    """Return how many tests fewer ran than the text explains, where the names of single tests do not tell."""
    if before.count is None or after.count is None or SINGLE & before.names.keys() & after.names.keys():
        return 0
    rows = sum(max(0, len(old.expects) - len(new.expects)) for old, new in compared.pairs)
    tables = sum(len(gone) - len(new) for _, gone, new in compared.tables)
    explained = len(compared.lost) + len(compared.taken_up) + rows + max(0, tables)
    return max(0, before.count - after.count - explained)


def _numbers(before: TestRun, after: TestRun, command: str) -> str:
    if before.count is None or after.count is None:
        return f"`{command}` runs other tests than before this change"
    tests = "1 test" if before.count == 1 else f"{before.count} tests"
    return f"`{command}` ran {tests} before this change and runs {after.count} now"
