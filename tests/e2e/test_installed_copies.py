"""What verify-setup installs of the project is what would be committed (docs/reference/completion.md)."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.needs import require_sandbox
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
BETTER = (
    "write_file",
    {"path": "src/calc.py", "content": "def add(*numbers):\n    return sum(numbers, 0)\n"},
)
MENDED = f"sed -i 's/return 3/return a + b/' {PLACE}/calc.py\n"
PTH = f"echo 'import calc; calc.add = int.__add__' > {PLACE}/zz.pth\n"


def started(
    make_project: MakeProject, *turns: Any, tasks: tuple[str, ...] = ("Write it",), more: str = ""
) -> Project:
    given = {"LOPEN_ORACLE__MUTATION": "off", "LOPEN_SANDBOX__MODE": "bwrap"}
    project = make_project([plan(tasks=tasks), *turns], **given)
    project.write("src/calc.py", "def add(a, b):\n    return a + b\n")
    project.write("tests/__init__.py", "")
    project.write("tests/test_old.py", TEST)
    project.write("install.sh", INSTALL + more)
    project.write("src/version.py", "version = 'unknown'\n")
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
    require_sandbox("bwrap")
    script = ("write_file", {"path": "install.sh", "content": INSTALL + more})
    project = started(make_project, tools(script, BAD, *verified("calc-t1")))

    ran = project.drive()

    assert ran.code != 0
    results = [r.data for r in tool_results(project.requests[-1]) if r.tool == "verify_task_completion"]
    told = [f["severity"] for f in results[0]["findings"] if said in f["message"]]
    assert told == ["error"], results


def test_copies_of_the_person_s_own_build_complete(make_project: MakeProject) -> None:
    """The copy is as old as the last setup; the build writes a version into it, as such builds do."""
    require_sandbox("bwrap")
    version = (
        f"echo 'version = 3' > {PLACE}/version.py\necho 'version.py,,' >> {PLACE}/calc-1.dist-info/RECORD\n"
    )
    first, second = tools(GOOD, *verified("calc-t1")), tools(BETTER, *verified("calc-t2"))
    project = started(make_project, first, second, tasks=("Write it", "Mend it"), more=version)

    ran = project.drive()

    assert ran.code == 0, ran.err
    told = str(project.oracle_requests[0]["messages"])
    assert told.count("verify-setup installed another text") == 1
    assert "src/version.py" in told
