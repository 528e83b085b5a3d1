"""What verify-setup installs of the project is what would be committed (docs/reference/completion.md)."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.project import Project, plan, specification, verified

PLACE = f".venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
# What pip leaves behind after `pip install .`, without a build: the copy, and the package's own records of it
INSTALL = f"""set -e
python3 -m venv --without-pip .venv
mkdir -p {PLACE}/calc-1.dist-info
cp src/*.py {PLACE}/
echo 'calc.py,,
calc-1.dist-info/RECORD,,' > {PLACE}/calc-1.dist-info/RECORD
echo '{{"url": "file:///project", "dir_info": {{}}}}' > {PLACE}/calc-1.dist-info/direct_url.json
"""
TEST = "import unittest\nfrom calc import add\n\n\nclass TestIt(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(5, 9), 14)\n"
BAD = ("write_file", {"path": "src/calc.py", "content": "def add(a, b):\n    return 3\n"})
GOOD = ("write_file", {"path": "src/calc.py", "content": "def add(*numbers):\n    return sum(numbers)\n"})
MENDED = f"sed -i 's/return 3/return a + b/' {PLACE}/calc.py\n"
PTH = f"echo 'import calc; calc.add = int.__add__' > {PLACE}/zz.pth\n"


def started(make_project: MakeProject, code: Any, more: str) -> Project:
    project = make_project([plan(), tools(code, *verified("calc-t1"))], LOPEN_ORACLE__MUTATION="off")
    project.write("src/calc.py", "def add(a, b):\n    return a + b\n")
    project.write("tests/__init__.py", "")
    project.write("tests/test_old.py", TEST)
    project.write("install.sh", INSTALL + more)
    project.write(".gitignore", ".venv/\n__pycache__/\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "Files")
    commands = {"verify-setup": "sh install.sh", "verify-tests": ".venv/bin/python -m unittest -q"}
    project.specify(text=specification(commands=commands))
    return project


@pytest.mark.parametrize(
    ("more", "said"),
    [(MENDED, "verify-setup installed another text of this file"), (PTH, "verify-setup put zz.pth into")],
)
def test_a_build_that_mends_the_code_is_refused(make_project: MakeProject, more: str, said: str) -> None:
    project = started(make_project, BAD, more)

    ran = project.drive()

    assert ran.code != 0
    results = [r.data for r in tool_results(project.requests[-1]) if r.tool == "verify_task_completion"]
    told = [(f["severity"], f["message"]) for f in results[0]["findings"] if said in f["message"]]
    assert [severity for severity, _ in told] == ["error"], results


def test_a_plain_copy_is_what_tests_may_run(make_project: MakeProject) -> None:
    ran = started(make_project, GOOD, "").drive()

    assert ran.code == 0, ran.err
