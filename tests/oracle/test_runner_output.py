"""Whether a test command ran any test, as the runners themselves print it."""

from __future__ import annotations

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
