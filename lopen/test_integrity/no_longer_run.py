"""Tests that ran before a change, are still there, and run no longer: found by comparing two runs of the test command.

A test that the change took out of the text is not a matter of this module: the comparison of the text reports it
(`compare`), or finds where it went. docs/reference/completion.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from lopen.judge.tests_run import SINGLE, TestsRun
from lopen.test_integrity.compare import Change
from lopen.test_integrity.detect import LANGUAGES, can_be_read, read_sides
from lopen.test_integrity.matching import Located, Matched, match_cases
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding, Severity

_SHOWN = 6  # names
_DATA = (".json", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".txt", ".xml")
_SHOWN_OTHERWISE = re.compile(r"@DisplayName\(|@\w+Test\([^)]*\bname =")  # JUnit names the test by it
ADVICE = "have the test command run them again"

Unchanged = Callable[
    [Callable[[str], bool]], Mapping[str, str]
]  # texts of the unchanged files that are wanted


def no_longer_run(
    changes: Sequence[FileChange], before: TestsRun, after: TestsRun, unchanged: Unchanged, command: str
) -> Iterator[Finding]:
    """Yield an error for each file with tests that `before` ran and `after` does not, though the text still has them.

    Where names do not tell, a number that fell by more than the tests that left the text is one error.
    """
    ours = [c for c in changes if can_be_read(c.before) and can_be_read(c.after)]
    sides = {language.name: read_sides(language, _covered(ours, language.covers)) for language in LANGUAGES}
    matched = {name: match_cases(*_cases(read)) for name, read in sides.items()}
    lost = [
        (new.path, new.case.name)
        for each in matched.values()
        for old, new in each.pairs
        if not _now_skipped(old, new)
        and not _SHOWN_OTHERWISE.search(new.case.body)
        and _lost(before, after, (old.path, old.case.name), (new.path, new.case.name))
    ]
    if any(set(names) - set(after.names.get(kind, ())) for kind, names in before.names.items()):
        lost += _in_unchanged_files(before, after, unchanged)
    by_path: dict[str, list[str]] = {}
    for path, name in dict.fromkeys(lost):
        by_path.setdefault(path, []).append(name)
    for path, names in sorted(by_path.items()):
        shown = ", ".join(names[:_SHOWN]) + (
            f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        )
        message = f"{_numbers(before, after, command)}; not deleted but no longer run: {shown}; {ADVICE}"
        yield Finding("error", message, path)
    if not by_path:
        yield from _fewer(ours, before, after, sides, matched, command)


def _covered(changes: Sequence[FileChange], covers: Callable[[str], bool]) -> list[FileChange]:
    return [change for change in changes if covers(change.path)]


def _cases(read: Sequence[Change]) -> tuple[list[Located], list[Located]]:
    before = [Located(c.path, case) for c in read for case in c.before.cases if not case.support]
    after = [Located(c.path, case) for c in read for case in c.after.cases if not case.support]
    return before, after


def _lost(before: TestsRun, after: TestsRun, old: tuple[str, str], new: tuple[str, str]) -> bool:
    return before.ran(*old) is True and after.ran(*new, moved=old[0] != new[0]) is False


def _now_skipped(old: Located, new: Located) -> bool:
    """Return True if the text alone tells that the test is skipped."""
    return any(skip.certain for skip in new.case.skips) and not any(skip.certain for skip in old.case.skips)


def _in_unchanged_files(before: TestsRun, after: TestsRun, unchanged: Unchanged) -> Iterator[tuple[str, str]]:
    """Yield (path, name) of the tests in files that the change does not touch."""
    for language in LANGUAGES:
        texts = {path: text for path, text in unchanged(language.covers).items() if can_be_read(text)}
        for path, suite in language.read(texts).items() if texts else ():
            for case in suite.cases:
                if not case.support and _lost(before, after, (path, case.name), (path, case.name)):
                    yield path, case.name


def _fewer(
    changes: Sequence[FileChange],
    before: TestsRun,
    after: TestsRun,
    sides: Mapping[str, Sequence[Change]],
    matched: Mapping[str, Matched],
    command: str,
) -> Iterator[Finding]:
    """Compare the numbers alone, where neither run's names are of single tests in their files."""
    if before.count is None or after.count is None or SINGLE & before.names.keys() & after.names.keys():
        return
    pairs = [pair for each in matched.values() for pair in each.pairs]
    had = sum(_rows(located) for each in sides.values() for located in _cases(each)[0])
    gone = had - sum(min(_rows(old), _rows(new)) for old, new in pairs if not _now_skipped(old, new))
    if before.count - after.count <= gone:
        return
    tables = any(old.case.rows or new.case.rows for old, new in pairs)
    data = any(change.path.endswith(_DATA) for change in changes)
    severity: Severity = "warning" if tables or data else "error"
    message = f"{_numbers(before, after, command)}; the change deletes {gone} of them; {ADVICE}"
    yield Finding(severity, message)


def _rows(located: Located) -> int:
    return located.case.rows or 1


def _numbers(before: TestsRun, after: TestsRun, command: str) -> str:
    if before.count is None or after.count is None:
        return f"`{command}` runs other tests than before this change"
    tests = "1 test" if before.count == 1 else f"{before.count} tests"
    return f"`{command}` ran {tests} before this change and runs {after.count} now"
