"""Read a test command's output: how many tests it ran, which of them failed, and the end of its output.

A test run without tests exits with success under most runners, and then proves nothing; so does a run in which all were
skipped. One table holds each runner's output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class Runner:
    """A test runner: the numbers of its own summary, and its output where no test ran.

    `count` has a group `parts` (numbers with their outcomes), `total` without the `skipped` ones, or `one` for each test.
    A test that was skipped did not run.
    """

    name: str
    count: re.Pattern[str]
    none: re.Pattern[str]


def _runner(name: str, count: str, none: str = r"(?!)") -> Runner:
    return Runner(name, re.compile(count, re.MULTILINE), re.compile(none, re.MULTILINE))


RUNNERS: tuple[Runner, ...] = (
    _runner(
        "pytest",
        r"^(?:=+ )?(?=(?:\d+ \w+, ){0,9}\d+ \w+ in [\d.]+s)(?P<parts>[^\n]*)",
        r"^(?:=+ )?no tests (?:ran|collected)\b",
    ),
    _runner(
        "unittest",
        r"^Ran (?P<total>\d+) tests? in [^\n]*(?:\n\s*(?:OK|FAILED) \((?:[^)\n]*, )?skipped=(?P<skipped>\d+))?",
        r"^NO TESTS RAN",
    ),
    _runner("jest", r"^[ \t]*Tests: (?P<parts>[^\n]*)\b\d+ total$", r"^No tests found"),
    _runner(
        "vitest",
        r"^[ \t]*Tests +(?P<parts>[^\n:]*)\(\d+\)$",
        r"^No test files found|^[ \t]*Tests +(?=\S)no tests",
    ),
    _runner("mocha", r"^[ \t]*(?P<total>\d+) (?:passing|failing)\b"),
    _runner(
        "node --test",
        r"^(?:#|ℹ) tests (?P<total>\d+)$(?:\n(?:#|ℹ) (?:suites|pass|fail|cancelled) \d+$){0,4}"
        r"(?:\n(?:#|ℹ) skipped (?P<skipped>\d+)$)?",
    ),
    _runner(
        "go test",
        r"(?<![ \t])--- (?:(?P<one>PASS|FAIL)|SKIP): ",
        r"\A(?![\s\S]*^(?:ok|FAIL)\s+\S+\s+(?:\(cached\)|[\d.]+s)(?![^\n]*\[no tests to run\]))"
        r"[\s\S]*\[no test(?: file)?s(?: to run)?\]",
    ),
    _runner("cargo test", r"^test result: (?P<parts>[^\n]*)", r"\A(?![\s\S]*^running [1-9])[\s\S]*^running 0 tests$"),
    _runner("cargo nextest", r"^[ \t]*Summary \[[^\n]*\b(?P<total>\d+) tests? run", r"no tests to run$"),
    _runner(
        "maven",
        r"^(?:\[(?:INFO|WARNING|ERROR)\] )?Tests run: (?P<total>\d+), Failures: \d+, Errors: \d+, Skipped: (?P<skipped>\d+)$",
        r"No tests to run\.|Tests are skipped\.",
    ),
    _runner("gradle", r"^(?P<total>\d+) tests? completed", r"\A(?![\s\S]*:test(?: [UF]\S+)?$)[\s\S]*:test (?:NO-SOURCE|SKIPPED)$"),
    _runner("ctest", r"tests passed, \d+ tests failed out of (?P<total>\d+)", r"^No tests were found!!!"),
    _runner("rspec", r"^(?P<total>\d+) examples?, \d+ failures?(?:, (?P<skipped>\d+) pending)?"),
    _runner(
        "phpunit",
        r"^(?:OK \(|Tests: )(?P<total>\d+)(?: tests?,|,)(?:[^\n]*\bSkipped: (?P<skipped>\d+))?",
        r"^No tests executed!",
    ),
    _runner(
        "dotnet test",
        r"^[ \t]*(?:Passed|Failed|Skipped)!\s+-[^\n]*Skipped:\s*(?P<skipped>\d+),\s*Total:\s*(?P<total>\d+)",
        r"^No test is available in ",
    ),
    _runner("deno test", r"^(?:ok|FAILED) \| (?P<parts>[^\n]*)", r"^error: No test modules found"),
)  # fmt: skip
_PARTS = re.compile(r"(?<!\d)(\d{1,9}) (?:failed|passed|xfailed|xpassed|errors?)\b")
_VERBOSE_GO = re.compile(r"^=== RUN ", re.MULTILINE)

_COLLECTED = re.compile(
    r"^collected (?P<collected>\d+) items?(?: / \d+ errors?)?(?: / (?P<left>\d+) deselected)?"
    r"(?: / \d+ skipped)?(?: / (?P<selected>\d+) selected)?$",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^(?:=+ )?(?:\d+ \w+, ){0,9}\d+ \w+ in [\d.]+s.*$", re.MULTILINE)
_OUTCOMES = re.compile(r"(?<!\d)(\d{1,9}) (?:failed|passed|skipped|xfailed|xpassed|errors?)\b")


def count_tests(output: str) -> int | None:
    """Return how many tests the runners say that they ran, without skipped ones; None where none tells."""
    text = plain(output)
    counts = [
        number
        for runner in RUNNERS
        for found in runner.count.finditer(text)
        for number in _numbers(found, text)
    ]
    if counts:
        return sum(counts)
    return 0 if any(runner.none.search(text) for runner in RUNNERS) else None


def _numbers(found: re.Match[str], text: str) -> Iterator[int]:
    groups = found.groupdict()
    if "total" in groups:
        yield int(groups["total"]) - int(groups.get("skipped") or 0)
    elif "parts" in groups:
        yield sum(map(int, _PARTS.findall(groups["parts"])))
    elif _VERBOSE_GO.search(text):
        yield int(groups["one"] is not None)


def fewer_reported(output: str) -> bool:
    """Return True if pytest tells of fewer results than it had collected: the program ended the run, or changed the runner."""
    text = plain(output)
    collected = sum(
        int(found["selected"] or int(found["collected"]) - int(found["left"] or 0))
        for found in _COLLECTED.finditer(text)
    )
    reported = sum(
        int(number) for summary in _SUMMARY.finditer(text) for number in _OUTCOMES.findall(summary[0])
    )
    return reported < collected


def plain(output: str) -> str:
    """Output without terminal escapes, its line ends made one."""
    return _ESCAPES.sub("", output).replace("\r\n", "\n").replace("\r", "\n")


def tail(output: str, limit: int) -> str:
    """The last `limit` characters of the plain output, from the start of a line, with a note of the omission."""
    text = plain(output).rstrip()
    if len(text) <= limit:
        return text
    kept = text[len(text) - limit :] if limit > 0 else ""
    _, newline, whole_lines = kept.partition("\n")
    shown = whole_lines if newline else kept
    return f"[{len(text) - len(shown)} characters before this are left out]\n{shown}"


# Lines by which runners tell of one test that passed, or of tests that begin
_PASSING = re.compile(
    r"^(?:"
    r"\s*ok \d+\b.*|\s*# Subtest: .*|\s*---|\s*\.\.\.|\s*(?:duration_ms|type): .*"  # TAP
    r"|(?:test\S* \(.*\)|test \S+|.*) \.\.\. ok"  # unittest, cargo
    r"|\S+::.* PASSED\b.*|(?:\S+ )?[.sxX]+ +\[ *\d+%\]|[.s]+"  # pytest, unittest
    r"|=== (?:RUN|PAUSE|CONT|NAME)\b.*|\s*--- PASS: .*|ok\s+\S+\s+(?:\(cached\)|[\d.]+s)"  # go
    r"|\s*[✓✔√] .*"
    r")$"
)
_FAILING = re.compile(
    r"^\s*not ok \b|\bFAIL(?:ED|URES?)?\b|\bERRORS?\b|Error\b|\berror(?:\[\w+\])?:|^Traceback|panicked|✗|✕|✖|×"
)
SHOWN_LINES = 60  # of a failed command
SUMMARY_LINES = 10  # of a command that passed, and at the end of a failed one's
LINES_BEFORE = 10  # shown before the first line that looks like a failure
LONGEST_LINE = 500


def shown_output(output: str, *, passed: bool) -> str:
    """Return the lines of an output that tell something: its failures first, without the tests that passed."""
    lines = [line[:LONGEST_LINE] for line in plain(output).rstrip().split("\n") if not _PASSING.match(line)]
    most = SUMMARY_LINES if passed else SHOWN_LINES
    if len(lines) <= most:
        return "\n".join(lines)
    end = lines[-SUMMARY_LINES:]
    if passed:
        return "\n".join([f"[{len(lines) - len(end)} lines before this are left out]", *end])
    room = most - len(end)
    first = next((n for n, line in enumerate(lines) if _FAILING.search(line)), len(lines))
    # Some runners name the place before the failure.
    first = min(max(0, first - LINES_BEFORE), len(lines) - most)
    begin, left = lines[first : first + room], len(lines) - first - most
    return "\n".join(
        [
            *([f"[{first} lines before this are left out]"] if first else []),
            *begin,
            *([f"[{left} lines are left out]"] if left else []),
            *end,
        ]
    )


def runs_tests(command: str, output: str, test_command: str | None) -> bool:
    """Return True if a command ran tests: it holds the specification's `verify-tests`, or a runner counted tests."""
    tests = " ".join((test_command or "").split())
    return count_tests(output) is not None or (bool(tests) and tests in " ".join(command.split()))
