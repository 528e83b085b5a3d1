"""Workflows of CI services: steps whose failures count no more, commands of tests with options that leave tests out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lopen.oracle.verdict import Finding
from lopen.test_integrity.runner_commands import RUNNER, command_findings
from lopen.test_integrity.suite import FileChange

WORKFLOWS = re.compile(
    r"(?:^|/)(?:\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml|azure-pipelines\.ya?ml|\.circleci/config\.ya?ml"
    r"|bitbucket-pipelines\.ya?ml|\.travis\.ya?ml)$"
)
_TOLERATED = re.compile(
    r"^[ \t]*(?:-[ \t]*)?(?:continue-on-error|allow_failure|continueOnError)[ \t]*:[ \t]*true\b", re.MULTILINE
)
_NEVER = re.compile(r"^[ \t]*(?:-[ \t]*)?if[ \t]*:[ \t]*(?:\$\{\{[ \t]*)?false\b", re.MULTILINE)
_COMMAND = re.compile(r"^\s*(?:-\s+)?(?:(?:run|script|command|bash)\s*:\s*)?[|>]?")
_OTHER = re.compile(r"^\s*(?:-\s*)?(?:#|(?:name|uses|key|path|if|id|env|with|needs)\s*:)")


def workflow_findings(change: FileChange) -> Iterator[Finding]:
    """Yield a warning for each way in which a workflow that runs tests asks less of them."""
    before, after = change.before or "", change.after or ""
    if not before or not RUNNER.search(before):
        return
    for pattern, says in (
        (_TOLERATED, "a job or step may fail now"),
        (_NEVER, "a job or step never runs now"),
    ):
        if len(pattern.findall(after)) > len(pattern.findall(before)):
            *_, found = pattern.finditer(after)
            line = after.count("\n", 0, found.start()) + 1
            yield Finding("warning", f"{says}: `{found.group().strip()}`", change.path, line)
    was = _commands(before)
    for number, command in _commands(after).items():
        if command in was.values():
            continue
        closest = next((old for old in was.values() if RUNNER.search(old)), "")
        for finding in command_findings(change.path, f"`{command[:80]}`", closest, command, line=number):
            if " runs only " not in finding.message:  # jobs divide the tests among themselves
                yield Finding("warning", finding.message, change.path, number)


def _commands(text: str) -> dict[int, str]:
    """Return the commands that run tests, by line."""
    lines = enumerate(text.splitlines(), 1)
    return {
        number: _COMMAND.sub("", line).strip()
        for number, line in lines
        if RUNNER.search(line) and not _OTHER.match(line)
    }
