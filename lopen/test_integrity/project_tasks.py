"""Commands that tools of a project run by name: scripts of `package.json`, tasks of `pyproject.toml`, sessions of nox."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lopen.core.untrusted_tables import read_toml_table
from lopen.test_integrity.runner_commands import RUNNER, command_findings, no_longer_runs
from lopen.test_integrity.runner_scripts import script_findings
from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_LONGEST = 500  # characters of a place: a deeper one is no tool's
_OF_TASKS = re.compile(r"(?:scripts|tasks|commands|legacy_tox_ini)\b")
_BETWEEN = re.compile(r"[\"'],[ \t]*[\"']")  # two arguments


def tool_command_findings(path: str, what: str, was: str, now: str) -> Iterator[Finding]:
    if no_longer_runs(was, now):
        yield Finding("error", f"{what} no longer runs the tests", path)
        return
    if _goes_on(now) and not _goes_on(was):
        yield Finding("error", f"{what} passes even if tests fail: another command's result counts", path)
    yield from command_findings(path, what, was, now)


def task_findings(change: FileChange) -> Iterator[Finding]:
    """`pyproject.toml`: the commands that hatch, poe, pdm, tox and their kin run."""
    was, now = (
        dict(_tasks(read_toml_table(change.before or "") or {})),
        dict(_tasks(read_toml_table(change.after or "") or {})),
    )
    for name, command in was.items():
        if name in now and now[name] != command:
            yield from tool_command_findings(change.path, name, command, now[name])


def _tasks(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the commands with their places in the table, which may nest deeper than functions can call themselves."""
    waiting: list[tuple[str, Any]] = [("", table)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{place}.{key}" if place else key, each) for key, each in value.items()]
        elif place.startswith("tool.") and len(place) <= _LONGEST and _OF_TASKS.search(place):
            yield place, "\n".join(map(_line, value if isinstance(value, list) else [value]))


def _line(value: object) -> str:
    """One command: a text, or a list of its words."""
    if isinstance(value, list):
        return " ".join(str(word) for word in value if not isinstance(word, (list, dict)))
    return "" if isinstance(value, dict) else str(value)


def nox_findings(change: FileChange) -> Iterator[Finding]:
    """`noxfile.py`: its calls of `session.run` read as the commands that they are."""
    before, after = (text and _BETWEEN.sub(" ", text) for text in (change.before, change.after))
    yield from script_findings(FileChange(change.path, before, after))


def _goes_on(command: str) -> bool:
    """Return True if a script runs another command behind the tests, whatever they found."""
    runner = RUNNER.search(command)
    return runner is not None and bool(re.search(r"(?<!\\);\s*(?!\s*exit\b)[\w.]", command[runner.end() :]))
