"""Runs of earlier versions of changed tests on the new code, and of unchanged tests without new support files."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lopen.verification.compared_tests import ComparedTests, question, shown
from lopen.verification.findings import ChangeQuestion, QuestionKind
from lopen.verification.test_files import FileChange
from lopen.verification.test_reader import TestCase
from lopen.verification.test_run import TestRun, in_file, last_part

ALL = "the whole test command"  # where the runner names none
FAILS = (
    "the earlier version of {names} fails on the new code, and the new version passes on the old code too: is the "
    "behaviour that it tested meant to change?"
)
UNTOLD = "the earlier version of {names} did not run on the new code: does the new version expect all that it expected?"
NEEDS = (
    "{names}, which the change does not touch, fail without {files}, which it adds or changes for tests: do these files "
    "stand in for the code?"
)


@dataclass(frozen=True, slots=True)
class EarlierTests:
    """The results of runs of changed tests. `files`: how many changed files of tests were taken back.

    `failing` are tests whose earlier version fails on the new code while the new one passes on the old code.
    `dependent` are unchanged tests that fail without the changed files `beside` them. `reason`: why no run tells.
    """

    files: int
    failing: tuple[str, ...] = ()
    dependent: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        """The result for people: one line, then the names."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        files = f"{self.files} changed test file{'' if self.files == 1 else 's'}"
        if self.reason:
            yield f"the earlier versions of {files} did not run on the new code: {self.reason}"
        elif self.files:
            went = f"{len(self.failing)} ask a question" if self.failing else "nothing to ask"
            yield f"ran the earlier versions of {files} on the new code: {went}"
        else:
            yield f"ran the unchanged tests without {shown(self.beside)}"
        yield from (
            f"  fails on the new code, its new version passes on the old: {name}" for name in self.failing
        )
        yield from (f"  fails without what is new beside it: {name}" for name in self.dependent)

    def questions(self, compared: ComparedTests, changes: Sequence[FileChange]) -> Iterator[ChangeQuestion]:
        """Yield a question for each file with failing tests, or with changed ones of which no run tells; and one for the
        tests that lean on new files.
        """
        by_path: dict[str, list[tuple[TestCase, TestCase]]] = {}
        for old, new in compared.pairs:
            changed = bool(self.reason) and old.body != new.body
            if changed or any(is_named(name, old) for name in self.failing):
                by_path.setdefault(new.path, []).append((old, new))
        for path, pairs in by_path.items():
            text = (UNTOLD if self.reason else FAILS).format(names=shown([old.name for old, _ in pairs]))
            kind: QuestionKind = "changed_expectation" if self.reason else "earlier_version_fails"
            yield question(kind, text[0].upper() + text[1:], path, pairs)
        if self.failing and not by_path:
            text = FAILS.format(names=shown(self.failing))
            yield ChangeQuestion("", "earlier_version_fails", text[0].upper() + text[1:])
        if self.dependent:
            sides = {change.path: change for change in changes if change.path in self.beside}
            before, after = (
                "\n".join(getattr(change, side) or "" for change in sides.values())[:6_000]
                for side in ("before", "after")
            )
            text = NEEDS.format(names=shown(self.dependent), files=shown(self.beside))
            yield ChangeQuestion("", "needs_new_support", text, self.beside[0], None, before, after)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values for storage; `earlier_tests_from_json` reads it back."""
        return asdict(self)


def earlier_tests_from_json(stored: Mapping[str, Any]) -> EarlierTests:
    """Return the result that `EarlierTests.to_json` wrote."""
    names = {key: tuple(stored[key]) for key in ("failing", "dependent", "beside")}
    return EarlierTests(stored["files"], reason=stored["reason"], **names)


def is_named(name: str, case: TestCase) -> bool:
    """Return True if a runner's name may be that of a test that was read."""
    if last_part(name).partition("[")[0] != last_part(case.name):
        return False
    file = name.partition("::")[0]
    return not re.search(r"\.(?:py|java|[cm]?[jt]sx?)$", file) or in_file(name, case.path)


def failing_tests(compared: ComparedTests, earlier: TestRun, new: TestRun) -> tuple[str, ...]:
    """Return the changed tests whose `earlier` version fails on the new code while the `new` one passes on the old code."""
    passed_before, passed_new = earlier.passed, new.passed
    found = []
    for old, case in compared.pairs:
        if any(is_named(name, old) for name in passed_before):
            continue
        if any(is_named(name, case) for name in passed_new):
            found.append(f"{old.path}::{old.name}")
    return tuple(sorted(found))


def optional_imports(source: bytes) -> bytes:
    """Return a Python file in which each import at its top may fail, so that only the tests that need it fail by it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    lines = source.split(b"\n")
    if any(b"\r" in line.removesuffix(b"\r") for line in lines):
        return source  # Python counts other lines
    for node in reversed(tree.body):
        if not isinstance(node, ast.Import | ast.ImportFrom) or node.end_lineno is None:
            continue
        before = lines[node.lineno - 1][: node.col_offset]
        behind = lines[node.end_lineno - 1][node.end_col_offset :].strip()
        of_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if before.strip() or (behind and not behind.startswith(b"#")) or of_future:
            continue
        each = [ast.unparse(_importing(node, alias)).encode() for alias in node.names]
        lines[node.lineno - 1 : node.end_lineno] = [
            b"try: %s\nexcept ImportError: pass" % statement for statement in each
        ]
    return b"\n".join(lines)


def _importing(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)
