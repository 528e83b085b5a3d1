"""New files that would answer to a test runner's name, and so run in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lopen.oracle.tampering.suite import FileChange
from lopen.oracle.verdict import Finding

# Python looks into the working folder before it looks anywhere else; what lies deeper is another package's module
_PYTHON = re.compile(
    r"^(?:src/|lib/|tests?/)?(?P<name>pytest|_pytest|pluggy|nose2?|doctest|sitecustomize|usercustomize)"
    r"(?:\.pyc?|\.[\w-]*\.?so|/__init__\.pyc?|/__main__\.pyc?)$"
    # a folder called unittest is often one of tests, and shadows only where Python is started beside it
    r"|^(?:src/|lib/)?(?P<own>unittest)(?:\.pyc?|\.[\w-]*\.?so|/__init__\.pyc?|/__main__\.pyc?)$"
)
_RUNNERS = r"pytest|jest|vitest|mocha|ava|tap|jasmine|karma|go|cargo|mvn|gradle|rspec|phpunit|deno|node|ctest"
_PROGRAM = re.compile(
    rf"(?:^|/)(?:\.venv|venv|node_modules|\.bin|bin|\.cargo)/(?:.*/)?(?P<name>{_RUNNERS})$|^(?P<top>{_RUNNERS})$"
)
_INSTALLED = re.compile(
    r"(?:^|/)node_modules/(?P<name>@jest|jest[\w-]*|vitest|@vitest|mocha|chai|ava|tap|jasmine[\w-]*|karma|expect)/"
    r"|(?:^|/)site-packages/(?P<package>_?pytest|pluggy|unittest2?|nose2?)(?:/|\.py$)"
)
_SCRIPT = re.compile(r"^(?P<name>jest|vitest|mocha|ava|jasmine|karma)\.[cm]?js$")


def shadowing_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """An error for each new file that stands where a runner is looked for, and is not that runner."""
    for change in changes:
        if change.before is None and change.after is not None and (name := _shadowed(change.path)):
            message = f"{change.path} is found in place of {name}: tests may not be run by {name} at all"
            yield Finding("error", message, change.path)


def _shadowed(path: str) -> str:
    """The runner in whose place the file would be found; "" for any other file."""
    for pattern in (_PYTHON, _PROGRAM, _INSTALLED, _SCRIPT):
        if found := pattern.search(path):
            return next(name for name in found.groups() if name)
    return ""
