"""Reading what a test command printed: whether it ran any test at all, and the end of its output.

A test run without tests exits with success under most runners, and then proves nothing; so does a run in which
all were skipped, or in which something else answered to the runner's name. What each runner prints stands in one
table; `runner_commands` tells which of them a command calls.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lopen.core.shell import simple_commands, unwrapped
from lopen.verification.junit import Counts

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class Runner:
    """A test runner: what it prints when no test ran, what when some did, and what, whatever else, when it ended.

    A test that was skipped did not run. Where `none` and `some` are both found, `some` counts.
    """

    name: str
    none: re.Pattern[str]
    some: re.Pattern[str]
    ended: re.Pattern[str] | None = None  # beside the two; of use where the runner is called plainly
    summary: re.Pattern[str] | None = (
        None  # instead of the three, for a runner that always prints one at its end
    )

    def spoke(self, output: str) -> bool:
        """Return True if the output has the runner's own end of a run in it."""
        if self.summary is not None:
            return self.summary.search(output) is not None
        return any(p.search(output) for p in (self.some, self.none, self.ended) if p is not None)


def _runner(
    name: str, none: str, some: str, ended: str | None = None, *, summary: str | None = None
) -> Runner:
    own = (re.compile(pattern, re.MULTILINE) if pattern is not None else None for pattern in (ended, summary))
    return Runner(name, re.compile(none, re.MULTILINE), re.compile(some, re.MULTILINE), *own)


_BLANK_OR_NOT = r"\S"  # for reporters that the project may choose: any output at all
_UNITTEST_SKIPPED = r"[^\n]*\n\s*OK \((?:[^)\n]*, )?skipped=(?P=n)\b"

RUNNERS: tuple[Runner, ...] = (
    _runner(
        "pytest",
        r"^(?:=+ )?no tests (?:ran|collected) ?(?:in |\(|=|$)|^=+ \d+ deselected in |^\d+ deselected in "
        r"|^=+ no tests collected|^no tests collected|^collected 0 items(?: / \d+ deselected)?$"
        r"|^(?:=+ )?\d+ skipped\b(?:, \d+ (?:deselected|warnings?))* in [\d.]+s|^s+ +\[100%\]$",
        r"^(?:=+ )?(?:\d+ \w+, ){0,9}\d+ (?:failed|passed|xfailed|xpassed|errors?)\b.*\bin [\d.]+s"
        r"|^(?=s*[.xXFE])[.sxXFE]+ +\[ *\d+%\]$",
        r"\b\d+ (?:passed|failed|skipped|xfailed|xpassed|deselected|errors?)\b|\[100%\]|^[.sxXFE]+\n",
    ),
    _runner(
        "unittest",
        rf"^Ran 0 tests in |^NO TESTS RAN|^Ran (?P<n>\d+) tests? in {_UNITTEST_SKIPPED}",
        rf"^Ran (?P<n>[1-9]\d*) tests? in (?!{_UNITTEST_SKIPPED})|^(?=[sxuFE]*\.)[.sxuFE]+$|\.\.\. ok$",
        summary=r"^Ran \d+ tests? in |^NO TESTS RAN",
    ),
    _runner(
        "jest",
        r"^No tests found|^[ \t]*Tests: +(?=\S)(?:\d+ (?:skipped|todo),? )+\d+ total",
        r"^[ \t]*Tests: +(?=\S).*\b[1-9]\d* (?:passed|failed)",
        _BLANK_OR_NOT,
    ),
    _runner(
        "vitest",
        r"^No test files found|^[ \t]*Tests +(?=\S)no tests|^[ \t]*Tests +(?=\S)(?:[|\s]*\d+ (?:skipped|todo))+ \(\d+\)",
        r"^[ \t]*Tests +(?=\S).*\b[1-9]\d* (?:passed|failed)",
        _BLANK_OR_NOT,
    ),
    _runner("mocha", r"^[ \t]*0 passing", r"^[ \t]*[1-9]\d* (?:passing|failing)", _BLANK_OR_NOT),
    _runner(
        "node --test", r"^(?:#|ℹ) tests 0$|^(?:#|ℹ) pass 0$", r"^(?:#|ℹ) (?:pass|fail|cancelled) [1-9]\d*$"
    ),
    _runner(
        "go test",
        r"\[no test files\]|\[no tests to run\]|^testing: warning: no tests to run|^[ \t]*--- SKIP",
        r"^[ \t]*--- (?:PASS|FAIL)|^FAIL\s+\S+\s+[\d.]+s"
        r"|\A(?![\s\S]*^[ \t]*--- SKIP)[\s\S]*^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?!.*\[no tests to run\])",
    ),
    _runner(
        "cargo test",
        r"^running 0 tests$|^test result: \w+\. 0 passed; 0 failed",
        r"^test result: \w+\. (?!0 passed; 0 failed)\d+ passed|^test \S.* \.\.\. (?:ok|FAILED)$",
        r"^running [1-9]\d* tests?$",
    ),
    _runner(
        "cargo nextest",
        r"^[ \t]*Starting 0 tests|no tests to run$",
        r"^[ \t]*Starting [1-9]\d* tests?|^[ \t]*Summary \[.*\b[1-9]\d* tests? run",
    ),
    _runner(
        "maven",
        r"Tests run: 0,|No tests to run\.|Tests are skipped\.|Tests run: (?P<n>\d+), Failures: 0, Errors: 0, Skipped: (?P=n)\b",
        r"Tests run: (?P<n>[1-9]\d*),(?! Failures: 0, Errors: 0, Skipped: (?P=n)\b)",
        r"\bBUILD SUCCESS\b",
    ),
    _runner(
        "gradle",
        r"^> Task (?=\S*[tT]est)\S+ (?:NO-SOURCE|SKIPPED)$|No tests found for given includes",
        r"^> Task \S*:(?!compile|process)\w*[tT]est(?: (?:UP-TO-DATE|FROM-CACHE|FAILED))?$|^\d+ tests? completed",
    ),
    _runner("ctest", r"^No tests were found!!!", r"tests passed, \d+ tests failed out of [1-9]"),
    _runner(
        "rspec",
        r"^0 examples, 0 failures|^(?P<n>\d+) examples?, 0 failures, (?P=n) pending",
        r"^(?P<n>[1-9]\d*) examples?, (?!0 failures, (?P=n) pending)",
        _BLANK_OR_NOT,
    ),
    _runner(
        "phpunit",
        r"^No tests executed!|^Tests: (?P<n>\d+), Assertions: \d+, (?:.*, )?Skipped: (?P=n)\b",
        r"^OK \([1-9]|^Tests: (?P<n>[1-9]\d*),(?!.*\bSkipped: (?P=n)\b)",
        _BLANK_OR_NOT,
    ),
    _runner(
        "dotnet test",
        r"^No test is available in |^[ \t]*Skipped!\s+-\s+Failed:",
        r"(?:Passed|Failed)!\s+-\s+Failed:",
    ),
    _runner(
        "deno test",
        r"^ok \| 0 passed \| 0 failed|^error: No test modules found",
        r"\| [1-9]\d* (?:passed|failed)",
    ),
)
_BY_NAME = {runner.name: runner for runner in RUNNERS}

# How runners name a failed test, one line each; an expectation of many tests is one name
_FAILED_TESTS = re.compile(
    r"^(?:FAILED|ERROR) (?P<pytest>\S+?\.py(?:::.*?)?)(?= - |$)"
    r"|^(?:FAIL|ERROR): (?P<unittest>\w+ \([\w.<>]+\))"
    r"|^[ \t]*--- FAIL: (?P<go>\S+)"
    r"|^test (?P<cargo>\S+)(?: - .*)? \.\.\. FAILED$"
    r"|^---- (?P<quiet_cargo>\S+) stdout ----$"
    r"|^[ \t]*● (?=[^\n]{0,300}\S › )(?P<jest>[^\n]*\S)$"
    r"|^[ \t]*(?:FAIL(?=[^\n]* > )|×|✗|✕|✖)[ \t]+(?P<node>\S.*?)(?:[ \t]+\(?[\d.]+[ \t]?m?s\)?)?$"
    r"|^not ok \d+ -? ?(?P<tap>\S.*)$"
    r"|^rspec (?P<rspec>\S+) #"
    r"|^\d+\) (?P<phpunit>[\w\\]+::\w+)"
    r"|^\[ERROR\][ \t]+(?P<maven>\w+\.\w+):\d+"
    r"|^[ \t]*Failed (?P<dotnet>\S+) \["
    r"|^(?P<gradle>\w+ > \S.*) FAILED$",
    re.MULTILINE,
)

_COLLECTED = re.compile(
    r"^collected (?P<collected>\d+) items?(?: / \d+ errors?)?(?: / (?P<left>\d+) deselected)?"
    r"(?: / \d+ skipped)?(?: / (?P<selected>\d+) selected)?$",
    re.MULTILINE,
)
_SUMMARY = re.compile(r"^(?:=+ )?(?:\d+ \w+, ){0,9}\d+ \w+ in [\d.]+s.*$", re.MULTILINE)
_OUTCOMES = re.compile(r"(?<!\d)(\d{1,9}) (?:failed|passed|skipped|xfailed|xpassed|errors?)\b")
_PYTEST = re.compile(r"(?:^|[\s/;&|])(?:py\.?test|python[\d.]*\s+-m\s+pytest)\b")
_PYTEST_NO_TESTS = 5  # pytest's documented exit code for "no tests were collected"; unittest's since 3.12


def no_tests_collected(
    exit_code: int | None, output: str, command: str, report: Counts | None = None
) -> bool:
    """Return True if a test command ran no test at all, which is a failure whatever its exit code.

    Skipped tests did not run. `report` counts more than what was printed. Where several runners printed, one that
    ran tests is enough. A runner that is called plainly and says nothing of its own was not the one that ran. An
    unknown runner is believed: the exit code then stands alone.
    """
    if report is not None:
        return report.tests <= report.skipped
    text = plain(output)
    if exit_code == 0 and not all(_BY_NAME[name].spoke(text) for name in called_runners(command)):
        return True
    if any(runner.some.search(text) for runner in RUNNERS):
        return False
    if exit_code == _PYTEST_NO_TESTS and _PYTEST.search(command):
        return True
    return any(runner.none.search(text) for runner in RUNNERS)


def failed_tests(output: str) -> tuple[str, ...]:
    """The names of the tests that failed, as the runners print them, each once and in order."""
    return tuple(
        dict.fromkeys(found[found.lastgroup or 0] for found in _FAILED_TESTS.finditer(plain(output)))
    )


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
    """The last `limit` characters of the plain output, from the start of a line, saying what was left out."""
    text = plain(output).rstrip()
    if len(text) <= limit:
        return text
    kept = text[len(text) - limit :] if limit > 0 else ""
    _, newline, whole_lines = kept.partition("\n")
    shown = whole_lines if newline else kept
    return f"[{len(text) - len(shown)} characters before this are left out]\n{shown}"


# What lets the output of the commands through; alternatives (`||`, `else`, `case`) leave open which of them runs
_PASSING = frozenset(["&&", ";", "\n", "if", "then", "fi", "{", "}", "while", "until", "do", "done"])
_CALLS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "pytest": (("pytest",), ("py.test",)),
    "unittest": (("unittest",),),
    "jest": (("jest",),),
    "vitest": (("vitest", "run"), ("vitest",)),
    "mocha": (("mocha",),),
    "node --test": (("node", "--test"),),
    "go test": (("go", "test"),),
    "cargo test": (("cargo", "test"), ("cargo", "t")),
    "cargo nextest": (("cargo", "nextest", "run"),),
    "maven": tuple(
        (mvn, goal) for mvn in ("mvn", "mvnw") for goal in ("test", "verify", "package", "install")
    ),
    "ctest": (("ctest",),),
    "rspec": (("rspec",),),
    "phpunit": (("phpunit",),),
    "deno test": (("deno", "test"),),
}
# Options under which a runner prints no summary, or another one
_QUIET: Mapping[str, re.Pattern[str]] = {
    "pytest": re.compile(
        r"^(?:-p)?no:terminal|^--(?:version|help|fixtures|markers|co|collect-only|setup-plan)$"
    ),
    "jest": re.compile(r"^--reporters\b|^--(?:json|outputFile|version|showConfig|listTests)\b"),
    "vitest": re.compile(r"^--(?:reporter|outputFile|silent|version)\b"),
    "mocha": re.compile(r"^-R|^--reporter\b|^--version$"),
    "node --test": re.compile(r"^--test-reporter"),
    "go test": re.compile(r"^--?(?:c|json|list|exec|o)(?:=|$)"),
    "cargo test": re.compile(r"^--(?:format|logfile|list|no-run|help|message-format)\b"),
    "cargo nextest": re.compile(r"^--(?:status-level|final-status-level|message-format)"),
    "maven": re.compile(r"^-(?:q|l|v|h)$|^--(?:quiet|log-file|version|help)$"),
    "ctest": re.compile(r"^-(?:Q|O)$|^--(?:quiet|output-log)"),
    "rspec": re.compile(r"^-(?:f|o)|^--(?:format|out|require)\b"),
    "phpunit": re.compile(r"^--(?:no-output|teamcity|testdox|printer|no-results)"),
    "deno test": re.compile(r"^--(?:reporter|no-run)\b"),
}


def called_runners(command: str) -> tuple[str, ...]:
    """The names of the runners that `command` calls plainly; none where that cannot be told for certain.

    A pipe, a redirection, an alternative or a substitution may take the output away, an option may ask for none:
    then nothing is said of that runner.
    """
    commands = simple_commands(command)
    if "`" in command or any(simple.outputs or not _PASSING.issuperset(simple.before) for simple in commands):
        return ()
    return tuple(name for simple in commands for name in _runner_of(unwrapped(simple.words)))


def _runner_of(words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    first = posixpath.basename(words[0])
    named = [first, *(word for word in words[1:] if not word.startswith("-"))]
    for name, calls in _CALLS.items():
        if any(call in ((first, *words[1 : len(call)]), tuple(named[: len(call)])) for call in calls):
            if not _is_quiet(name, words[1:]):
                yield name
            return


def _is_quiet(name: str, options: Sequence[str]) -> bool:
    if name == "pytest" and sum(word.count("q") for word in options if re.match(r"^-[qvsx]+$", word)) > 1:
        return True
    pattern = _QUIET.get(name)
    return pattern is not None and any(pattern.search(word) for word in options)


# Programs whose first argument says what they do: `npm test` is not `npm install`.
_TWO_WORDS = frozenset(
    [
        "npm",
        "yarn",
        "pnpm",
        "bun",
        "deno",
        "node",
        "cargo",
        "go",
        "make",
        "gmake",
        "just",
        "task",
        "mvn",
        "mvnw",
        "gradle",
        "gradlew",
        "python",
        "python3",
        "dotnet",
        "bundle",
        "rake",
        "composer",
        "php",
        "ruby",
        "bazel",
        "sbt",
        "mix",
        "swift",
        "nx",
        "turbo",
        "lein",
    ]
)
_BESIDE_TESTS = frozenset(
    ["cd", "export", "set", "mkdir", "true", "echo", "pushd", "popd", "tail", "head", "tee", "grep", "cat"]
)


def runs_tests(command: str, test_command: str | None) -> bool:
    """Return True if `command` runs what the specification's `verify-tests` runs, on all or on some of the tests."""
    return bool(test_command) and bool(_programs(test_command or "") & _programs(command))


@lru_cache(maxsize=64)  # the specification's command is asked about at every call
def _programs(command: str) -> frozenset[tuple[str, ...]]:
    """The programs that a line runs: `pytest`, `npm test`, … without wrappers and arguments."""
    found: set[tuple[str, ...]] = set()
    for simple in simple_commands(command):
        rest = unwrapped(simple.words)
        if rest and " " in rest[0]:  # a script of `bash -c`
            found |= _programs(rest[0])
        elif rest and (name := posixpath.basename(rest[0])) not in _BESIDE_TESTS:
            named = [
                word.removeprefix("./") for word in rest[1:] if not word.startswith("-") and word != "run"
            ]
            found.add((re.sub(r"^python[\d.]+$", "python", name), *(named[:1] if name in _TWO_WORDS else ())))
    return frozenset(found)
