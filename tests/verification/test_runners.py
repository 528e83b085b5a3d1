"""Whether a test command ran any test, as the runners themselves print it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.verification.junit import Counts
from lopen.verification.runners import failed_tests, fewer_reported, no_tests_collected, plain, tail
from tests.tables import table

CASES = table(__file__, "runner_outputs.toml")


@pytest.mark.parametrize(("command", "code", "output"), CASES["none_ran"] + CASES["all_skipped"], ids=str)
def test_a_run_without_tests_is_seen(command: str, code: int, output: str) -> None:
    assert no_tests_collected(code, output, command)


@pytest.mark.parametrize(("command", "code", "output"), CASES["some_ran"], ids=str)
def test_a_run_with_tests_is_not(command: str, code: int, output: str) -> None:
    assert not no_tests_collected(code, output, command)


@pytest.mark.parametrize(("output", "names"), CASES["failed"], ids=str)
def test_the_failed_tests_are_named(output: str, names: list[str]) -> None:
    assert list(failed_tests(output)) == names


@pytest.mark.parametrize(("command", "output"), CASES["silent"], ids=str)
def test_a_runner_that_says_nothing_did_not_run(command: str, output: str) -> None:
    assert no_tests_collected(0, output, command)


@pytest.mark.parametrize(("command", "output"), CASES["spoken_for"], ids=str)
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
