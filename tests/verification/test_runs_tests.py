"""When a command was a test run."""

from __future__ import annotations

import pytest

from lopen.verification.runners import runs_tests


@pytest.mark.parametrize(
    ("command", "output", "tests", "ran"),
    [
        ("cd api && python -m pytest -x 2>&1 | tail -5", "1 failed, 2 passed in 0.1s\n", "pytest -q", True),
        ("pytest -q x.py", "no tests ran in 0.01s\n", "pytest -q", True),
        ("cd . &&  make   test | tee log", "ok\n", "make test", True),
        ("pip install pytest", "Successfully installed pytest\n", "pytest -q", False),
        ("make", "ok\n", None, False),
    ],
)
def test_a_test_run_is_told_by_its_output_or_the_approved_command(
    command: str, output: str, tests: str | None, *, ran: bool
) -> None:
    assert runs_tests(command, output, tests) is ran
