"""Changed tests whose earlier or new version imports what the other code lacks (docs/reference/completion.md)."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import MakeProject
from tests.e2e.test_earlier_tests import CODE, RUNNERS, findings, started, write

GONE = "import unittest\nfrom calc import {names}\n\n\nclass TestIt(unittest.TestCase):\n"
OLD = "    def test_old(self):\n        self.assertEqual(total([1, 2]), 3)\n"
FALSE = "    def test_old(self):\n        self.assertIn(total([1, 2]), (3, 0))\n"
SIZE = "    def test_size(self):\n        self.assertEqual({call}, 2)\n"
PAIR = "    def test_pair(self):\n        self.assertEqual(pair(1), (1, 1))\n"
BROKEN = CODE.replace("sum(numbers)", "0")
LOADED = {  # code afterwards, tests before and after, severities by test
    "an import is gone": (
        BROKEN.replace("def size", "def length"),
        GONE.format(names="total, size") + OLD + SIZE.format(call="size('ab')"),
        GONE.format(names="total") + FALSE + SIZE.format(call="len('ab')"),
        {"test_old": "error", "test_size": "info"},
    ),
    "another alias": (
        BROKEN.replace("first = pair\n", ""),
        GONE.format(names="total, first") + OLD + PAIR.replace("pair(1)", "first(1)"),
        GONE.format(names="total, pair") + FALSE + PAIR,
        {"test_old": "error", "test_pair": "warning"},
    ),
    "an import is new": (
        BROKEN + "\n\ndef more(n):\n    return n + 1\n",
        GONE.format(names="total") + OLD,
        GONE.format(names="more, total") + FALSE + SIZE.format(call="more(1)"),
        {"test_old": "error"},
    ),
    "other parameters": (
        BROKEN.replace("scale(n)", "scale(n, by)").replace("n * 10", "n * by"),
        GONE.format(names="scale, total") + OLD + SIZE.format(call="scale(1) // 5"),
        GONE.format(names="total") + FALSE + SIZE.format(call="len('ab')"),
        {"test_old": "error", "test_size": "warning"},
    ),
}


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("change", LOADED)
def test_a_missing_import_hides_no_other_test(make_project: MakeProject, runner: str, change: str) -> None:
    code, before, after, expected = LOADED[change]
    files = {"calc.py": f"{CODE}\n\nfirst = pair\n", "tests/test_it.py": before}
    code = code if change == "another alias" else f"{code}\n\nfirst = pair\n"
    project = started(make_project, runner, files, write("calc.py", code), write("tests/test_it.py", after))

    project.drive()

    told = [
        f
        for f in findings(project)
        if "on the old code too" in f["message"] or "accept the old" in f["message"]
    ]
    assert {name: f["severity"] for name in expected for f in told if name in f["message"]} == expected
