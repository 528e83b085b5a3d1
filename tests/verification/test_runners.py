"""Whether a test command ran any test, as the runners themselves print it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.verification.runners import (
    SHOWN_LINES,
    SUMMARY_LINES,
    count_tests,
    fewer_reported,
    plain,
    shown_output,
    tail,
)
from tests.tables import table

CASES = table(__file__, "runner_outputs.toml")


@pytest.mark.parametrize("output", CASES["none"], ids=str)
def test_a_run_without_tests_is_seen(output: str) -> None:
    assert count_tests(output) == 0


@pytest.mark.parametrize("output", CASES["some"], ids=str)
def test_a_run_with_tests_or_of_an_unknown_runner_is_not(output: str) -> None:
    assert count_tests(output) != 0


@given(st.text())
def test_any_output_is_read_without_error(output: str) -> None:
    count_tests(output)


def test_the_tail_keeps_the_end_in_whole_lines_and_says_what_is_missing() -> None:
    shown = tail("first\nsecond\nthird\n", 12)

    assert shown == "[13 characters before this are left out]\nthird"


@given(st.text(), st.integers(0, 100))
def test_the_tail_keeps_its_limit(output: str, limit: int) -> None:
    shown = tail(output, limit)

    assert shown == plain(output).rstrip() or len(shown.partition("\n")[2]) <= limit


def test_terminal_escapes_do_not_survive() -> None:
    assert plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\r\ny") == "red x\ny"


@pytest.mark.parametrize(
    ("output", "fewer"),
    [
        ("collected 3 items\n\na.py .\n\n=== 1 passed in 0.01s ===\n", True),
        ("collected 5 items / 2 deselected / 3 selected\n\n=== 2 passed, 2 deselected in 0.01s ===\n", True),
        ("collected 5 items / 2 deselected / 3 selected\n\n=== 3 passed, 2 deselected in 0.01s ===\n", False),
        (
            "collected 2 items / 1 skipped\n\n== 1 passed, 1 skipped, 1 xfailed, 2 warnings in 1.01s (0:01) ==\n",
            False,
        ),
        ("collected 1 item\n== 1 passed in 0.1s ==\ncollected 2 items\n== 2 passed in 0.1s ==\n", False),
        ("4 workers [3 items]\n...   [100%]\n3 passed in 0.10s\n", False),
        ("Ran 3 tests in 0.001s\n\nOK\n", False),
    ],
)
def test_fewer_results_than_collected_tests_are_noticed(output: str, fewer: bool) -> None:
    assert fewer_reported(output) is fewer


PASSING = {
    "tap": "# Subtest: adds {n}\nok {n} - adds\n  ---\n  duration_ms: 0.4\n  type: 'test'\n  ...",
    "unittest": "test_add_{n} (test_calc.TestCalc.test_add_{n}) ... ok",
    "pytest": "tests/test_calc.py::test_add_{n} PASSED",
    "go": "=== RUN   TestAdd{n}\n--- PASS: TestAdd{n} (0.00s)",
    "cargo": "test adds_{n} ... ok",
    "jest": "    ✓ adds {n} (2 ms)",
}


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING)
def test_of_a_failed_run_the_failures_are_shown_and_no_test_that_passed(passing: str) -> None:
    failure = ["not ok 7 - FAILED: sums are off", *(f"detail {n}" for n in range(90)), "1 failed, 200 passed"]
    before = "\n".join(passing.format(n=n) for n in range(200))
    shown = shown_output("\n".join([before, *failure]), passed=False).split("\n")
    assert shown[0] == failure[0]
    assert shown[-1] == failure[-1]
    assert len(shown) == SHOWN_LINES + 1  # with the line that tells of the cut
    assert "[32 lines are left out]" in shown


def test_of_a_failed_run_the_lines_before_the_first_failure_are_shown_too() -> None:
    place = [
        "    calc_test.go:12: got",
        *(f"        func Get{n}() error" for n in range(5)),
        "        and no more",
    ]
    output = "\n".join(
        [*("compiling" for _ in range(40)), *place, "--- FAIL: TestCalc", *("detail" for _ in range(90))]
    )
    shown = shown_output(output, passed=False)
    assert "calc_test.go:12: got" in shown
    assert "[37 lines before this are left out]" in shown


def test_of_a_run_that_passed_the_end_is_shown() -> None:
    output = "\n".join([f"compiling {n}" for n in range(50)] + ["200 passed in 3.00s"])
    shown = shown_output(output, passed=True).split("\n")
    assert shown[-1] == "200 passed in 3.00s"
    assert len(shown) == SUMMARY_LINES + 1
