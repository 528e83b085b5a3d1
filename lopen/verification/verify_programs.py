"""The line by which the output of a verify command says that it could not start."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

from lopen.verification.runners import plain
from lopen.verification.test_files import words

NOT_FOUND = 127  # exit codes of a shell
NOT_EXECUTABLE = 126
_NO_PROGRAM = re.compile(
    r"(?P<name>[^\s:'\"`]+)['\"`]?: (?:command )?not found\b|command not found: (?P<zsh>\S+)"
)
_NO_MODULE = re.compile(r"^.+: No module named '?(?P<name>[\w.]+)'?$", re.MULTILINE)
_RECIPE = re.compile(r"^make(?:\[\d+\])?: \*\*\* .* Error 12[67]$", re.MULTILINE)
_NO_CARGO_COMMAND = re.compile(r"^error: no such (?:sub)?command: .*$", re.MULTILINE)
# Modules that are not part of the work, even where the specification speaks of them
TOOLS = words(
    "black build compileall coverage doctest flake8 hatch isort mypy nose2 nox pip poetry pylint pyright pytest ruff tox "
    "trial twine unittest"
)
_TESTS = ("test", "tests")


def start_failure(
    command: str, exit_code: int | None, output: str, *, root: Path, planned: Container[str]
) -> str:
    """Return the line of the output that says why the command could not start; "" where it started.

    A file of the project or a module that is still to be written (one of the `planned` words) is not missing.
    """
    if not exit_code:
        return ""
    text = plain(output).rstrip()
    last = text.splitlines()[-1] if text else f"exit code {exit_code}"
    if exit_code == NOT_EXECUTABLE or _RECIPE.search(text) or _NO_CARGO_COMMAND.search(text):
        return last
    if exit_code == NOT_FOUND:
        found = _NO_PROGRAM.search(text)
        name = (found["name"] or found["zsh"]) if found else ""
        ours = ("/" in name and not name.startswith("/")) or (not name and "No such file" in text)
        return "" if ours else (_line_of(text, found) if found else last)
    found = _NO_MODULE.search(text)
    if found is None or not re.search(rf"-m\s*{re.escape(found['name'])}(?![\w.])", command):
        return ""
    top = found["name"].partition(".")[0]
    ours = top in _TESTS or top in planned or (root / top).exists() or (root / f"{top}.py").exists()
    return "" if ours and top not in TOOLS else found[0]


def _line_of(text: str, found: re.Match[str]) -> str:
    start = text.rfind("\n", 0, found.start()) + 1
    return text[start:].partition("\n")[0]
