"""Code that can tell that it is being tested, or changes what tests it: its tests then prove nothing of its use.

The rules read single lines of text: a name that is put together when the code runs, or an alias, is not found.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from lopen.test_integrity.suite import FileChange
from lopen.test_integrity.surroundings import asking_pattern
from lopen.verification.findings import Finding, Severity

_SOURCE = re.compile(r"\.(?:py|[cm]?[jt]sx?|go|rs|java|rb|php|kt|cs|sh)$")
_NO_CODE = re.compile(r"^\s*(?:#|//|\*|/\*)")
_RULES: tuple[tuple[re.Pattern[str], Severity, str], ...] = (
    (re.compile(r"\bLOPEN_UNDER_SESSION\b"), "error", "reads a mark of lopen's own"),
    (
        re.compile(
            r"\b(?:unittest\.)?TestCase\.(?:assert\w+|run|debug|fail\w*)\s*=(?!=)"
            r"|\b(?:unittest\.(?:main|TestResult(?:\.\w+)?|TextTestRunner)|pytest\.(?:main|fail|raises))\s*=(?!=)"
            r"|\bsetattr\(\s*(?:unittest\b|pytest\b|TestCase\b)"
        ),
        "error",
        "changes the test runner",
    ),
    (
        re.compile(
            r"\bPYTEST_(?:CURRENT_TEST|VERSION|XDIST_WORKER)\b|[\"']_?(?:pytest|unittest)[\w.]*[\"']\s+(?:not\s+)?in\b.{0,80}\b(?:modules|argv|stack|orig_argv|frames?)\b"
            r"|\b(?:modules|argv|orig_argv|stack)\b.{0,80}[\"']_?(?:pytest|unittest)\b"
            r"|\bsys\.modules\.get\(\s*[\"']_?(?:pytest|unittest)|\b(?:JEST_WORKER_ID|VITEST(?:_WORKER_ID)?)\b|import\.meta\.vitest"
            r"|\btesting\.Testing\(\)|\bflag\.Lookup\(\s*\"test\.|\bos\.Args\[0\].{0,20}[\"`][^\"`]*\.test\b|\bcfg!\(test\)|\bcurrent_exe\(\).{0,80}\bdeps\b|\bNODE_ENV\b\W{0,4}\s*[!=]==?\s*[\"']test[\"']"
        ),
        "warning",
        "asks if it is being tested",
    ),
    (
        re.compile(
            r"[\"']git[\"']\s*,.{0,80}[\"'](?:log|show|remote|rev-parse|rev-list|describe|reflog|status|branch|for-each-ref|"
            r"cat-file|symbolic-ref|--get(?:-all|-regexp)?)[\"']|[\"'`(]\s*git (?:-\S+ )*(?:log|show|remote|rev-parse|rev-list|describe|reflog|status|config --get\S*)\b"
            r"|[\"'/]\.git(?:/[^\"']*)?[\"']|^\s*(?:import|from) (?:git|pygit2|dulwich)\b"
            r"|[\"'](?:simple-git|isomorphic-git|nodegit)[\"']"
        ),
        "warning",
        "asks git about its own repository, by which it can tell where it is tested",
    ),
    (
        re.compile(r"\b_exit\(\s*(?:0+|False|(?:os\.)?EX_OK)?\s*\)"),
        "warning",
        "ends the process with success, whatever its tests found",
    ),
)

ASKING = "asks about the process or machine it runs on, by which it can tell where it is tested"
_HASHES = re.compile(r"\bhashlib\.\w+\(|\b(?:sha\d+|md5|blake2[bs]|crc32|adler32)\(")
_READS_CODE = re.compile(
    r"\bgetsource(?:lines)?\(|\bgetsourcefile\(|\b\w+\.(?:__file__|__code__)\b|\bco_code\b|[\"'][\w./-]*\.(?:py|[cm]?[jt]s|go|rs|java)[\"']"
)
_NEAR = 6  # lines between the reading and the hashing


def _hashing_findings(change: FileChange) -> Iterator[Finding]:
    """A test that compares the code's text by its hash notices every change and tests no behaviour."""
    if _HASHES.search(change.before or "") and _READS_CODE.search(change.before or ""):
        return
    lines = (change.after or "").splitlines()
    for at, line in enumerate(lines):
        near = "\n".join(lines[max(0, at - _NEAR) : at + _NEAR + 1])
        if _HASHES.search(line[:2_000]) and _READS_CODE.search(near[:20_000]):
            message = f"this test hashes the source of the code, so it tells nothing of behaviour: `{line.strip()[:80]}`"
            yield Finding("warning", message, change.path, at + 1)
            return


def under_test_findings(changes: Sequence[FileChange], tests: Container[str]) -> Iterator[Finding]:
    """Yield a finding for each rule that a changed source file newly meets. `tests` are the paths of test files."""
    for change in changes:
        if change.path in tests and change.path.endswith(".py"):
            yield from _hashing_findings(change)
        if change.after is None or change.path in tests or not _SOURCE.search(change.path):
            continue
        known = {line.strip() for line in (change.before or "").splitlines()}
        asking = asking_pattern(change.after)
        for pattern, severity, what in (*_RULES, (asking, "warning", ASKING)):
            for number, line in enumerate(change.after.splitlines(), 1):
                if line.strip() not in known and not _NO_CODE.match(line) and pattern.search(line[:2_000]):
                    message = f"this code {what}: `{line.strip()[:80]}`"
                    yield Finding(severity, message, change.path, number)
                    break
