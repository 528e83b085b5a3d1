"""Tracked files that the test command changes while it runs: the tests that passed are not those of the commit."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import code, plan, verified

THREE = ("write_file", {"path": "calc.py", "content": "def add(a, b):\n    return 3\n"})
OLD = "import unittest\nfrom calc import add\n\n\nclass TestOld(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(add(5, 9), 14)\n"
TEST = "import pathlib\np = pathlib.Path('tests/test_old.py')\np.write_text(p.read_text().replace('14)', '3)'))\n"
DATA = "import pathlib\npathlib.Path('seen.txt').write_text('new')\n"


@pytest.mark.parametrize(
    ("product", "path", "text"), [(THREE, "tests/test_old.py", TEST), (code()[0], "seen.txt", DATA)]
)
def test_what_the_test_command_rewrites_is_told(
    make_project: MakeProject, product: tuple[str, dict[str, str]], path: str, text: str
) -> None:
    calls = [
        product,
        code()[1],
        ("write_file", {"path": "tests/__init__.py", "content": text}),
        *verified("calc-t1"),
    ]
    project = make_project([plan(), tools(*calls)], LOPEN_ORACLE__MUTATION="off")
    files = {
        "calc.py": "def add(a, b):\n    return a + b\n",
        "tests/__init__.py": "",
        "tests/test_old.py": OLD,
        "seen.txt": "old\n",
    }
    for name, content in files.items():
        project.write(name, content)
    project.git("add", "-A")
    project.git("commit", "-qm", "Files")
    project.specify()

    ran = project.drive()

    assert ran.code == 0, ran.err
    asked = json.dumps(project.oracle_requests[0])
    assert "changed this file while it ran" in asked
    assert path in asked
