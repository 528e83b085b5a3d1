"""Workflows of CI services: steps whose failures count no more, commands of tests with options that leave tests out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from lopen.test_integrity.runner_commands import RUNNER, beside_a_whole_one, command_findings
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

WORKFLOWS = re.compile(
    r"(?:^|/)(?:\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml|azure-pipelines\.ya?ml|\.circleci/config\.ya?ml"
    r"|bitbucket-pipelines\.ya?ml|\.travis\.ya?ml)$"
)
_TOLERATED = re.compile(
    r"\s*(?:-\s+)?(?:continue-on-error|allow_failure|continueOnError)\s*:\s*(?:\$\{\{\s*)?[\"']?true\b"
)
_NEVER = re.compile(
    r"\s*(?:-\s+)?(?:if\s*:\s*[\"']?(?:\$\{\{\s*)?false\b|when\s*:\s*(?:never|manual)\b|(?:condition|enabled)\s*:\s*false\b)"
)
_ITEM = re.compile(r"\s*(?:-\s+)*")
_MOST_LINES = 3_000
_MOST_MARKS = 50
_COMMAND = re.compile(r"^\s*(?:-\s+)?(?:(?:run|script|command|bash)\s*:\s*)?[|>]?")
_HANDED = re.compile(  # to what runs the tests by another file of the project
    r"(?:\b(?:make|just|task|invoke|inv|rake|hatch|mage|earthly|pixi|scripts?/[\w./-]*)[ \t:]|\./)[^\n#]{0,200}?(?:test|check|verify|spec|\bci\b)"
)
_OTHER = re.compile(
    r"^\s*(?:-\s*)?(?:#|(?:name|uses|key|path|if|id|env|with|needs)\s*:|[\w-]+\s*:\s*$|(?!\w*(?:COMMAND|CMD|SCRIPT))[A-Z][A-Z0-9_]+\s*:)"
)


def workflow_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a warning for each way in which the changed workflows that ran tests ask less of them."""
    elsewhere = any(_commands(change.after or "") for change in changes)
    for change in changes:
        yield from _findings(change, elsewhere=elsewhere)


def _findings(change: FileChange, *, elsewhere: bool) -> Iterator[Finding]:
    before, after = change.before or "", change.after or ""
    if not before or not RUNNER.search(before):
        return
    known = Counter(text for text, _, _ in _marks(before))
    for text, line, says in _marks(after):
        known[text] -= 1
        if known[text] < 0:
            yield Finding("warning", f"{says}: `{text}`", change.path, line)
    was = _commands(before)
    now = _commands(after)
    handed = any(_HANDED.search(line) and not _OTHER.match(line) for line in after.splitlines())
    if was and not now and not elsewhere and not handed:
        yield Finding(
            "warning", f"`{next(iter(was.values()))[:80]}` is gone: no step runs tests", change.path
        )
    for number, command in now.items():
        if command in was.values():
            continue
        closest = next((old for old in was.values() if RUNNER.search(old)), "")
        if beside_a_whole_one(closest, command, now.values()):
            continue
        for finding in command_findings(change.path, f"`{command[:80]}`", closest, command, line=number):
            if " runs only " not in finding.message:  # jobs divide the tests among themselves
                yield Finding("warning", finding.message, change.path, number)


def _marks(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield the keys by which steps and jobs with tests may fail or never run: text, line, and which of them."""
    lines = text.splitlines()[:_MOST_LINES]
    marked = [at for at, line in enumerate(lines) if _TOLERATED.match(line) or _NEVER.match(line)]
    for at in marked[:_MOST_MARKS]:
        line = lines[at]
        tolerated = _TOLERATED.match(line)
        if any(RUNNER.search(other) and not other.lstrip().startswith("#") for other in _block(lines, at)):
            says = "a job or step may fail now" if tolerated else "a job or step never runs now"
            yield line.strip(" -"), at + 1, says


def _block(lines: Sequence[str], at: int) -> Sequence[str]:
    """The lines of the mapping, a step or a job, that a key stands in."""
    column, start, end = _column(lines[at]), at, at + 1
    while start > 0 and not (lines[start].lstrip().startswith("- ") and _column(lines[start]) == column):
        if lines[start - 1].strip() and _column(lines[start - 1]) < column:
            break
        start -= 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) >= column):
        end += 1
    return lines[start:end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _column(line: str) -> int:
    """Where the key of a line starts, behind the dash of a list."""
    found = _ITEM.match(line)
    return found.end() if found else 0


def _commands(text: str) -> dict[int, str]:
    """Return the commands that run tests, by line."""
    lines = enumerate(text.splitlines(), 1)
    return {
        number: _COMMAND.sub("", line).strip()
        for number, line in lines
        if RUNNER.search(line) and not _OTHER.match(line)
    }
