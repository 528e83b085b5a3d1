"""Whether a test command ran any test, as the runners themselves print it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.oracle.junit import Counts
from lopen.oracle.runner_output import no_tests_collected, plain, tail

NONE_RAN = [
    ("pytest -q", 5, "\nno tests ran in 0.01s\n"),
    ("pytest", 5, "collected 0 items\n\n============ no tests ran in 0.01s ============\n"),
    (
        "pytest",
        5,
        "\x1b[33m========= \x1b[33mno tests ran\x1b[0m\x1b[33m in 0.01s\x1b[0m\x1b[33m =========\x1b[0m\n",
    ),
    (
        "pytest -k nothing",
        5,
        "collected 3 items / 3 deselected / 0 selected\n\n===== 3 deselected in 0.01s =====\n",
    ),
    ("pytest -q -k nothing", 5, "3 deselected in 0.01s\n"),
    (".venv/bin/python -m pytest", 5, ""),
    ("make test", 0, "pytest -q\n\nno tests ran in 0.00s\n"),
    ("python -m unittest", 0, "\n----------\nRan 0 tests in 0.000s\n\nOK\n"),
    ("python -m unittest", 5, "\n----------\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n"),
    ("npx jest", 1, "No tests found, exiting with code 1\nRun with `--passWithNoTests`\n"),
    ("npx jest --passWithNoTests", 0, "No tests found, exiting with code 0\n"),
    ("npx vitest run", 1, "No test files found, exiting with code 1\n"),
    ("npx mocha", 0, "\n\n  0 passing (1ms)\n\n"),
    ("node --test", 0, "TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n"),
    ("node --test", 0, "ℹ tests 0\nℹ suites 0\nℹ pass 0\n"),
    (
        "go test ./...",
        0,
        "?   \texample.com/money\t[no test files]\n?   \texample.com/cash\t[no test files]\n",
    ),
    ("go test -run X ./...", 0, "ok  \texample.com/money\t0.002s [no tests to run]\n"),
    ("go test -run X", 0, "testing: warning: no tests to run\nPASS\nok  \tm\t0.001s [no tests to run]\n"),
    (
        "cargo test",
        0,
        "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed\n\n   Doc-tests m\n\nrunning 0 tests\n",
    ),
    ("mvn test", 0, "[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n"),
    ("mvn test", 0, "[INFO] Tests run: 0, Failures: 0, Errors: 0, Skipped: 0\n"),
    ("mvn test -DskipTests", 0, "[INFO] Tests are skipped.\n"),
    (
        "gradle test",
        0,
        "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n",
    ),
    ("ctest", 0, "Test project /x\nNo tests were found!!!\n"),
    ("rspec", 0, "No examples found.\n\n0 examples, 0 failures\n"),
    ("deno test", 0, "ok | 0 passed | 0 failed (1ms)\n"),
]
ALL_SKIPPED = [
    ("pytest -q", 0, "sss                       [100%]\n3 skipped in 0.01s\n"),
    ("pytest", 0, "collected 3 items\n\na.py sss [100%]\n\n======== 3 skipped in 0.01s ========\n"),
    ("pytest", 0, "==== 2 skipped, 1 deselected, 1 warning in 0.01s ====\n"),
    ("pytest -qq", 0, "sss                       [100%]\n"),
    ("python -m unittest", 0, "s\n----------\nRan 1 test in 0.000s\n\nOK (skipped=1)\n"),
    ("python -m unittest -q", 0, "----------\nRan 12 tests in 0.000s\n\nOK (skipped=12)\n"),
    ("make test", 0, "Ran 2 tests in 0.000s\n\nOK (skipped=2)\n"),
    ("npx jest", 0, "Test Suites: 1 skipped, 0 of 1 total\nTests:       2 skipped, 2 total\n"),
    ("npx jest", 0, "Tests:       2 skipped, 1 todo, 3 total\n"),
    ("npx vitest run", 0, " Test Files  1 skipped (1)\n      Tests  2 skipped | 1 todo (3)\n"),
    ("npx mocha", 0, "\n  0 passing (1ms)\n  2 pending\n"),
    ("node --test", 0, "# tests 2\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 2\n"),
    (
        "go test -v ./...",
        0,
        "=== RUN   TestA\n    a_test.go:5: later\n--- SKIP: TestA (0.00s)\nPASS\nok  \tm\t0.002s\n",
    ),
    (
        "cargo test",
        0,
        "running 2 tests\ntest a ... ignored\ntest b ... ignored\n\ntest result: ok. 0 passed; 0 failed; 2 ignored;"
        " 0 measured; 0 filtered out\n\n   Doc-tests m\n\nrunning 0 tests\n",
    ),
    ("mvn test", 0, "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2, Time elapsed: 0.03 s\n"),
    ("rspec", 0, "**\n\n2 examples, 0 failures, 2 pending\n"),
    (
        "phpunit",
        0,
        "OK, but incomplete, skipped, or risky tests!\nTests: 2, Assertions: 0, Skipped: 2.\n",
    ),
    ("dotnet test", 0, "Skipped! - Failed: 0, Passed: 0, Skipped: 2, Total: 2\n"),
    ("deno test", 0, "ok | 0 passed | 0 failed | 2 ignored (1ms)\n"),
]
SILENT = [
    ("pytest -q", "starting\n"),
    ("pytest --tb=short tests", ""),
    (".venv/bin/python -m pytest -q -x", ""),
    ("python -m unittest -q", ""),
    ("PYTHONPATH=src python3 -B -m unittest discover -s tests", "hello\n"),
    ("cd app && python -m unittest -q", ""),
    ("ruff check . && uv run pytest", "All checks passed!\n"),
    ("python -m unittest -q 2>&1", ""),
    ("if true; then pytest; fi", ""),
    ("for d in a b; do cd $d && pytest; done", ""),
    ("npx jest", ""),
    ("npx vitest run", "\n"),
    ("go test ./...", ""),
    ("cargo test -q", ""),
    ("node --test", "done\n"),
    ("./mvnw -B test", "ok\n"),
]
SPOKEN_FOR = [
    ("pytest -qq", ""),
    ("pytest -q -q", ""),
    ("pytest -q", "..s                                [100%]\n"),  # the project's own options say -q as well
    ("pytest -q", "..s\n"),
    ("pytest", "Results (0.05s):\n       3 passed\n"),  # pytest-sugar
    ("pytest -p no:terminal", ""),
    ("mvn -B verify", "[INFO] BUILD SUCCESS\n"),
    ("pytest > out.txt", ""),
    ("if true; then pytest; fi > out.txt", ""),
    ("if true; then pytest; else npx jest; fi", ""),
    ("case x in x) pytest;; esac", ""),
    ("f() { pytest; }; f", ""),
    ("pytest &", ""),
    ("if pytest; then :; fi | tail", ""),
    ("pytest -q | tee out.txt", ""),
    ("pytest -q || exit 1", ""),
    ("make test", ""),
    ("tox", ""),
    ("npm test", ""),
    ('python -m unittest -q && echo "$(pytest)"', ""),
    ("python -m mypackage.tests", ""),
    ("python run_tests.py pytest", ""),
    ("echo pytest", "pytest\n"),
    ("npx jest", "PASS  a.test.js (custom reporter)\n"),
    ("npx jest --reporters=jest-junit", ""),
    ("npx vitest run --reporter=json --outputFile=o.json", ""),
    ("npx mocha -R dot", ""),
    ("node --test --test-reporter=dot", ""),
    ("go test -json ./...", "{}\n"),
    ("go test ./...", "?   \tm/a\t[no test files]\nok  \tm/b\t(cached)\n"),
    ("cargo test -q", "\nrunning 1 test\n.\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n"),
    ("mvn -q test", ""),
    ("gradle test", "BUILD SUCCESSFUL in 1s\n"),
    ("pytest 'unclosed", ""),
]
SOME_RAN = [
    ("pytest -q", 0, "...\n3 passed in 0.01s\n"),
    ("pytest", 0, "collected 3 items\n\ntests/test_a.py ...\n\n===== 3 passed in 0.01s =====\n"),
    (
        "pytest",
        0,
        "\x1b[32m===== \x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.01s\x1b[0m\x1b[32m =====\x1b[0m\n",
    ),
    ("pytest", 0, "======= 1 passed, 3 deselected in 0.01s =======\n"),
    ("pytest", 1, "======= 1 failed, 2 passed, 1 warning in 0.01s =======\n"),
    ("python -m unittest", 0, "...\n------\nRan 3 tests in 0.001s\n\nOK\n"),
    ("python -m unittest a && python -m unittest b", 0, "Ran 0 tests in 0.000s\n\nRan 2 tests in 0.001s\n"),
    ("npx jest", 0, "Test Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\n"),
    ("npx vitest run", 0, " Test Files  1 passed (1)\n      Tests  3 passed (3)\n"),
    ("npx mocha", 0, "\n  3 passing (4ms)\n"),
    ("node --test", 0, "# tests 3\n# pass 3\n"),
    ("go test ./...", 0, "?   \tm/a\t[no test files]\nok  \tm/b\t0.002s\n"),
    ("go test ./...", 0, "?   \tm/a\t[no test files]\nok  \tm/b\t(cached)\n"),
    ("go test ./...", 0, "?   \tm/a\t[no test files]\nok  \tm/b\t0.003s\tcoverage: 80.0% of statements\n"),
    ("go test ./...", 1, "?   \tm/a\t[no test files]\nFAIL\tm/b\t0.002s\n"),
    ("cargo test", 0, "running 3 tests\ntest a ... ok\n\n   Doc-tests m\n\nrunning 0 tests\n"),
    ("cargo test", 0, "running 0 tests\n\nrunning 1 test\ntest a ... ok\n"),
    ("mvn test", 0, "[INFO] Tests run: 3, Failures: 0\n[INFO] Tests run: 0, Failures: 0\n"),
    ("gradle test", 0, "> Task :compileTestJava\n> Task :test\n\nBUILD SUCCESSFUL in 1s\n"),
    ("gradle test", 0, "> Task :test UP-TO-DATE\n> Task :lib:test NO-SOURCE\n"),
    ("pytest && npx jest --passWithNoTests", 0, "3 passed in 0.01s\nNo tests found, exiting with code 0\n"),
    ("pytest", 0, "======= 1 passed, 3 skipped in 0.01s =======\n"),
    ("pytest", 0, "======= 3 skipped, 2 xfailed in 0.01s =======\n"),
    ("pytest -q", 0, "ss.\n1 passed, 2 skipped in 62.01s (0:01:02)\n"),
    ("pytest -qq", 0, "....................          [ 50%]\nssss           [100%]\n"),
    ("python -m unittest", 0, "s.\n-----\nRan 2 tests in 0.000s\n\nOK (skipped=1)\n"),
    ("python -m unittest", 0, "Ran 12 tests in 0.000s\n\nOK (skipped=1)\n"),
    ("python -m unittest", 0, "Ran 1 test in 0.000s\n\nOK (skipped=12)\n"),
    ("python -m unittest", 0, "ss.\n---\nRan 2 tests in 0.000s\n\nOK (skipped=2)\n"),  # of two subtests
    ("npx jest", 0, "Tests:       1 skipped, 3 passed, 4 total\n"),
    ("npx vitest run", 0, "      Tests  3 passed | 1 skipped (4)\n"),
    ("node --test", 0, "# tests 3\n# pass 1\n# fail 0\n# skipped 2\n"),
    ("go test -v", 0, "--- SKIP: TestA (0.00s)\n--- PASS: TestB (0.00s)\nok  \tm\t0.002s\n"),
    ("cargo test", 0, "running 2 tests\n\ntest result: ok. 1 passed; 0 failed; 1 ignored\n"),
    ("mvn test", 0, "Tests run: 12, Failures: 0, Errors: 0, Skipped: 1\n"),
    ("rspec", 0, "12 examples, 0 failures, 2 pending\n"),
    ("./check.sh", 0, "all good\n"),
    ("./check.sh", 5, "something else failed\n"),
    ("true", 0, ""),
]


@pytest.mark.parametrize(("command", "code", "output"), NONE_RAN, ids=str)
def test_a_run_without_tests_is_seen(command: str, code: int, output: str) -> None:
    assert no_tests_collected(code, output, command)


@pytest.mark.parametrize(("command", "code", "output"), SOME_RAN, ids=str)
def test_a_run_with_tests_is_let_be(command: str, code: int, output: str) -> None:
    assert not no_tests_collected(code, output, command)


@pytest.mark.parametrize(("command", "code", "output"), ALL_SKIPPED, ids=str)
def test_a_skipped_test_is_no_test_that_ran(command: str, code: int, output: str) -> None:
    assert no_tests_collected(code, output, command)


@pytest.mark.parametrize(("command", "output"), SILENT, ids=str)
def test_a_runner_that_says_nothing_did_not_run(command: str, output: str) -> None:
    assert no_tests_collected(0, output, command)


@pytest.mark.parametrize(("command", "output"), SPOKEN_FOR, ids=str)
def test_silence_counts_only_where_it_is_certain(command: str, output: str) -> None:
    assert not no_tests_collected(0, output, command)


TEST = "import unittest\n\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1, 1)\n"


@pytest.mark.parametrize(
    ("files", "none"),
    [
        ({"test_it.py": TEST}, False),
        ({"test_it.py": TEST, "unittest/__init__.py": "", "unittest/__main__.py": ""}, True),
        ({"test_it.py": f"import os\nos._exit(0)\n{TEST}"}, True),
        (
            {
                "test_it.py": TEST.replace(
                    "    def", "    def setUp(self):\n        self.skipTest('x')\n\n    def"
                )
            },
            True,
        ),
    ],
    ids=["runs", "another unittest", "ends at once", "skipped in setUp"],
)
@pytest.mark.parametrize("options", [["-q"], []], ids=["quiet", "plain"])
def test_a_run_of_unittest_itself_is_read(
    tmp_path: Path, files: dict[str, str], none: bool, options: list[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    ran = subprocess.run(
        [sys.executable, "-m", "unittest", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert ran.returncode == 0
    assert no_tests_collected(ran.returncode, ran.stdout, " ".join(["python -m unittest", *options])) is none


def test_a_report_of_skipped_tests_tells_of_no_test_that_ran() -> None:
    assert no_tests_collected(0, "", "pytest", Counts(tests=2, skipped=2))
    assert not no_tests_collected(0, "", "pytest", Counts(tests=2, skipped=1))


def test_a_report_counts_more_than_what_was_printed() -> None:
    assert no_tests_collected(0, "3 passed in 0.01s", "pytest", Counts())
    assert not no_tests_collected(0, "", "pytest", Counts(tests=1))


@given(st.none() | st.integers(), st.text(), st.text())
def test_any_output_is_read_without_error(code: int | None, output: str, command: str) -> None:
    no_tests_collected(code, output, command)


def test_the_tail_keeps_the_end_in_whole_lines_and_says_what_is_missing() -> None:
    shown = tail("first\nsecond\nthird\n", 12)

    assert shown == "[13 characters before this are left out]\nthird"


@given(st.text(), st.integers(0, 100))
def test_the_tail_keeps_its_limit(output: str, limit: int) -> None:
    shown = tail(output, limit)

    assert shown == plain(output).rstrip() or len(shown.partition("\n")[2]) <= limit


def test_terminal_escapes_do_not_survive() -> None:
    assert plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\r\ny") == "red x\ny"
