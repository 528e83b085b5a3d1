"""What lopen notes of a run of Python's test runners, by real runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lopen.sandbox.command import Room
from lopen.verification.run_record import NO_RECORD, RunRecord
from tests.ran import SHELL_PYTHON
from tests.verification.recorded_runs import recorded_run

PY = SHELL_PYTHON
FILES = {
    "test_good.py": "import unittest\n\nclass TestIt(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): pass\n",
    "bad/test_bad.py": "def test_bad():\n    assert False\n",
    "skips/test_classes.py": "import unittest\n\nclass TestIt(unittest.TestCase):\n    @classmethod\n"
    "    def setUpClass(cls): raise unittest.SkipTest('no')\n    def test_a(self): pass\n\n"
    "class TestOther(unittest.TestCase):\n    def test_b(self): self.skipTest('no')\n    def test_größe(self): pass\n"
    "    def test_d(self):\n        with self.subTest(): self.skipTest('no')\n",
    "nested/test_nested.py": "import subprocess, sys, os\n\ndef test_nested():\n    assert not {'PYTHONPATH', 'NODE_OPTIONS'} & set(os.environ)\n"
    "    assert not any('.python' in path for path in sys.path)\n"
    "    assert subprocess.call([sys.executable, '-m', 'pytest', 'bad']) == 1\n",
    "ends/test_ends.py": "import os\n\ndef test_ends():\n    os._exit(0)\n",
    "own/sitecustomize.py": "import builtins\nbuiltins.own = 1\n",
    "tests_own/test_own.py": "import builtins\n\ndef test_own():\n    assert builtins.own\n",
    "coverage.py": "import runpy, sys\n\nsys.argv = sys.argv[sys.argv.index('-m') + 1 :]\n"
    "runpy.run_module(sys.argv[0], run_name='__main__')\n",
    "program.py": "print('no test')\n",
}
GOOD = "pytest ran 2 of 2 collected tests, 0 failed"
RUNS = {
    f"{PY} -m pytest -q test_good.py": (GOOD, ""),
    f"{PY} -m coverage run --source . -m pytest -q test_good.py": (GOOD, ""),
    f"{PY} -m unittest -q skips.test_classes": (
        "unittest ran 3 of 3 collected tests, 0 failed, 1 skipped",
        "",
    ),
    f"{PY} -m pytest -q test_good.py && {PY} -m unittest -q test_good": (f"{GOOD}; unittest ran 2 of", ""),
    f"{PY} -m pytest -q bad || true": ("1 failed", "pytest itself counted 1 failed tests"),
    f"{PY} -m pytest -q nested": ("pytest ran 1 of 1 collected tests, 0 failed", ""),
    f"{PY} -m pytest -q ends": ("pytest did not come to its end", "before pytest was done"),
    f"PYTHONPATH=$PYTHONPATH:own {PY} -m pytest -q tests_own": ("pytest ran 1 of", ""),
    f"{PY} program.py": (NO_RECORD, ""),
    f"PYTHONPATH=own {PY} -m pytest -q ends": (NO_RECORD, ""),
}


def line_of(record: RunRecord) -> str:
    return [*record.lines("")][-1].strip("[]")


@pytest.mark.parametrize("line", RUNS)
def test_a_run_is_noted_beside_what_it_prints(tmp_path: Path, line: str) -> None:
    record, ran = recorded_run(tmp_path, FILES, line)

    says, reason = RUNS[line]
    assert says in line_of(record), ran.output
    assert ran.exit_code == 0
    if "skips" in line and "classes" in line:
        names = ["skips/test_classes.py::TestOther::test_d", "skips/test_classes.py::TestOther::test_größe"]
        assert record.test_run("").names["python"] == tuple(names)
    why = record.why_not_passed(ran)
    if reason or says != NO_RECORD:
        assert (reason in why, bool(why)) == (True, bool(reason))


OTHERS = {
    "test_one.py": "def test_a(): pass\ndef test_b(): assert False\ndef test_c(): assert False\n",
    "test_two.py": "def test_d(): pass\n",
    "test_case.py": "import unittest\n\nclass TestIt(unittest.TestCase):\n    def test_a(self): self.fail()\n    def test_b(self): self.fail()\n",
}
ASKED = {
    (
        f"{PY} -m pytest -v",
        ("stop", "only test_one.py::test_b"),
    ): "pytest ran 1 of 3 collected tests, 1 failed",
    (f"{PY} -m pytest -v", ("only test_two.py",)): "pytest ran 1 of 1 collected tests, 0 failed",
    (f"{PY} -m pytest -v", ("only gone.py::test_d",)): "pytest ran 6 of 6 collected tests, 4 failed",
    (f"{PY} -m unittest -q test_case", ("stop",)): "unittest ran 1 of 2 collected tests, 1 failed",
}


@pytest.mark.parametrize(("line", "options"), ASKED)
def test_a_run_is_asked_to_stop_and_to_run_some_files(
    tmp_path: Path, line: str, options: tuple[str, ...]
) -> None:
    record, ran = recorded_run(tmp_path, OTHERS, line, *options)

    assert line_of(record).endswith(ASKED[line, options]), ran.output
    assert bool(ran.exit_code) == ("0 failed" not in ASKED[line, options])
    assert ran.exit_code or not record.why_not_passed(ran)


def test_what_a_command_wrote_into_the_record_is_read_as_data(tmp_path: Path) -> None:
    record = RunRecord(Room(tmp_path, tmp_path), mounted=False)
    notes = tmp_path / ".tests" / "notes"
    notes.write_bytes(
        b"1 started pytest\n1 ran \xff 0 0\n2 ran 1 0 0\n\n1 started bash\n1 ran 3 0 0\n" + b"x" * 2_000_000
    )

    record.read()

    assert line_of(record) == "lopen's own record of this test run: pytest ran 3 tests, 0 failed"
    notes.write_bytes(b"1 started pytest\n" + b"1 test a.py::test_one\n" * 800_000 + b"1 ran 800000 0 0\n")
    record.read()
    assert line_of(record) == NO_RECORD
    notes.unlink()
    os.mkfifo(notes)
    record.read()
    assert line_of(record) == NO_RECORD
