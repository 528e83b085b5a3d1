"""Reading what a test command printed: whether it ran any test at all, and the end of its output.

A test run without tests exits with success under most runners, and then proves nothing. What is known of each
runner stands in one table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lopen.oracle.junit import Counts

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class Runner:
    """A test runner: what it prints when it found no test, and what when it ran some."""

    name: str
    none: re.Pattern[str]
    some: re.Pattern[str]


def _runner(name: str, none: str, some: str) -> Runner:
    return Runner(name, re.compile(none, re.MULTILINE), re.compile(some, re.MULTILINE))


RUNNERS: tuple[Runner, ...] = (
    _runner(
        "pytest",
        r"^(?:=+ )?no tests (?:ran|collected) ?(?:in |\(|=|$)|^=+ \d+ deselected in |^\d+ deselected in "
        r"|^=+ no tests collected|^no tests collected|^collected 0 items(?: / \d+ deselected)?$",
        r"^(?:=+ )?(?:\d+ (?:failed|passed|skipped|xfailed|xpassed|errors?)\b,? ?)+.*\bin [\d.]+s",
    ),
    _runner("unittest", r"^Ran 0 tests in |^NO TESTS RAN", r"^Ran [1-9]\d* tests? in "),
    _runner(
        "jest and vitest",
        r"^No tests found|^No test files found|^\s*Tests\s+no tests",
        r"^\s*Tests:?\s+.*\b[1-9]\d* (?:passed|failed|total)",
    ),
    _runner("mocha", r"^\s*0 passing", r"^\s*[1-9]\d* (?:passing|failing)"),
    _runner("node --test", r"^(?:#|ℹ) tests 0$", r"^(?:#|ℹ) tests [1-9]\d*$"),
    _runner(
        "go test",
        r"\[no test files\]|\[no tests to run\]|^testing: warning: no tests to run",
        r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?!.*\[no tests to run\])|^\s*--- (?:PASS|FAIL)|^FAIL\s+\S+\s+[\d.]+s",
    ),
    _runner("cargo test", r"^running 0 tests$", r"^running [1-9]\d* tests?$"),
    _runner("cargo nextest", r"^\s*Starting 0 tests|no tests to run$", r"^\s*Starting [1-9]\d* tests?"),
    _runner(
        "maven",
        r"Tests run: 0,|No tests to run\.|Tests are skipped\.",
        r"Tests run: [1-9]\d*,",
    ),
    _runner(
        "gradle",
        r"^> Task \S*[tT]est\S* (?:NO-SOURCE|SKIPPED)$|No tests found for given includes",
        r"^> Task \S*:(?!compile|process)\w*[tT]est(?: (?:UP-TO-DATE|FROM-CACHE|FAILED))?$|^\d+ tests? completed",
    ),
    _runner("ctest", r"^No tests were found!!!", r"tests passed, \d+ tests failed out of [1-9]"),
    _runner("rspec", r"^0 examples, 0 failures", r"^[1-9]\d* examples?, "),
    _runner("phpunit", r"^No tests executed!", r"^OK \([1-9]|^Tests: [1-9]"),
    _runner("dotnet test", r"^No test is available in ", r"(?:Passed|Failed)!\s+-\s+Failed:"),
    _runner(
        "deno test",
        r"^ok \| 0 passed \| 0 failed|^error: No test modules found",
        r"\| [1-9]\d* (?:passed|failed)",
    ),
)

_PYTEST = re.compile(r"(?:^|[\s/;&|])(?:py\.?test|python[\d.]*\s+-m\s+pytest)\b")
_PYTEST_NO_TESTS = 5  # pytest's documented exit code for "no tests were collected"; unittest's since 3.12


def no_tests_collected(
    exit_code: int | None, output: str, command: str, report: Counts | None = None
) -> bool:
    """Whether a test command ran no test at all, which is a failure whatever its exit code (contract §4).

    `report` counts more than what was printed. Where several runners printed, one that ran tests is enough. An
    unknown runner is believed: the exit code then stands alone.
    """
    if report is not None:
        return report.tests == 0
    text = plain(output)
    if any(runner.some.search(text) for runner in RUNNERS):
        return False
    if exit_code == _PYTEST_NO_TESTS and _PYTEST.search(command):
        return True
    return any(runner.none.search(text) for runner in RUNNERS)


def plain(output: str) -> str:
    """Output without terminal escapes, its line ends made one."""
    return _ESCAPES.sub("", output).replace("\r\n", "\n").replace("\r", "\n")


def tail(output: str, limit: int) -> str:
    """The last `limit` characters of the plain output, from the start of a line, saying what was left out."""
    text = plain(output).rstrip()
    if len(text) <= limit:
        return text
    kept = text[len(text) - limit :] if limit > 0 else ""
    _, newline, whole_lines = kept.partition("\n")
    shown = whole_lines if newline else kept
    return f"[{len(text) - len(shown)} characters before this are left out]\n{shown}"
