"""Tests that notice mutants by other means than behaviour, and code that hides from the mutants."""

from __future__ import annotations

import json

from tests.e2e.conftest import MakeProject
from tests.e2e.test_mutation_check import ASSERTS_NOTHING, PRICES, checks, done, started, write
from tests.endpoint import last_result

COUNTS_LINES = """import subprocess
import unittest


class TestCode(unittest.TestCase):
    def test_code(self):
        changed = subprocess.run(["git", "diff", "--numstat"], capture_output=True, text=True).stdout
        self.assertNotIn("1\\t1\\tprices.py", changed)
"""


def test_a_test_that_looks_for_one_changed_line_counts_for_nothing(make_project: MakeProject) -> None:
    code = write("prices.py", PRICES)
    project = started(make_project, done(code, write("test_code.py", COUNTS_LINES)))

    project.drive()

    refused = last_result(project.requests[2], "verify_task_completion")
    errors = [f["message"] for f in refused.data["findings"] if f["severity"] == "error"]
    assert "Not counted are test_code (test_code.TestCode" in " ".join(errors), refused.data


STOPS_AT_ONE_COMMENT = """import os
import pathlib

if pathlib.Path("prices.py").read_text().count("  #\\n") == 1:
    os._exit(1)
"""


def test_a_comment_that_stops_the_tests_hides_no_blindness(make_project: MakeProject) -> None:
    test = write("test_prices.py", STOPS_AT_ONE_COMMENT + ASSERTS_NOTHING)
    project = started(make_project, done(write("prices.py", PRICES), test))

    project.drive()

    refused = last_result(project.requests[2], "verify_task_completion")
    assert "notice none of" in str(refused.data["findings"]), refused.data


def test_work_without_mutants_is_told_to_the_judge(make_project: MakeProject) -> None:
    hidden = write("prices.py", f"exec({PRICES!r})\n")
    project = started(make_project, done(hidden, write("test_prices.py", ASSERTS_NOTHING)))

    ran = project.drive()

    assert (ran.code, checks(ran)) == (0, [])
    says = "no mutants were made: no changed function was found in prices.py"
    assert says in json.dumps(project.oracle_requests[0]["messages"])
    assert says in project.lopen("show", "calc-t1").out
