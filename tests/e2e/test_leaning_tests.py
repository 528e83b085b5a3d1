"""Tests that a change does not touch, and that pass only with what it adds beside them (docs/reference/completion.md)."""

from __future__ import annotations

import shutil

import pytest

from tests.e2e.conftest import MakeProject
from tests.e2e.test_earlier_tests import (
    BAD,
    CHECK,
    CODE,
    HEAD,
    NEW_CODE,
    NODE,
    checks,
    findings,
    started,
    write,
)
from tests.needs import lacking

OLD = {"calc.py": CODE, "tests/test_old.py": HEAD + CHECK}
OTHER = {"calc.py": CODE + "\n\ndef named():\n    return 'calc'\n"}
RIGHT = "def add(a, b):\n    return a + b\n"
LIMITED = "import os\n\n\ndef add(a, b):\n    return a + b if os.environ.get('LIMIT') else 3\n"
NEW_TEST = "\n\ndef test_new():\n    assert True is not calc.add\n"
HOSTILE = {  # what the change adds beside an old test that fails on the new code
    "code of a function": [
        BAD,
        write("tests/test_aaa.py", f"import calc\n\n\ndef _add(a, b):\n    return a + b\n\n\ncalc.add.__code__ = _add.__code__{NEW_TEST}"),
    ],
    "environment": [
        write("calc.py", LIMITED),
        write("tests/conftest.py", "import os\n\nos.environ['LIMIT'] = '20'\n"),
    ],
    "what a module has": [
        BAD,
        write("tests/test_aaa.py", f"import calc\n\nvars(calc).update(add=int.__add__){NEW_TEST}"),
    ],
    "what the old code lacks": [
        write("calc.py", "limit = 8\n\n\ndef add(a, b):\n    return a + b if b <= limit else 0\n"),
        write("tests/test_aaa.py", f"import calc\nfrom calc import limit\n\nvars(calc).update(limit=limit + 12)\n{NEW_TEST}"),
    ],
    "item": [
        BAD,
        write("conftest.py", "def pytest_runtest_call(item):\n    item.runtest = lambda: None\n"),
    ],
}  # fmt: skip
MIRROR = """import pathlib
import calc


def test_each_file_has_tests():
    for file in pathlib.Path('.').glob('calc*.py'):
        assert file.name == 'calc.py' or pathlib.Path(f'tests/test_{file.name}').exists()


def test_named():
    assert calc.named() == 'calc'
"""
LAZY = "\n\ndef named():\n    from spec import NAME\n\n    return NAME\n"
HONEST = {
    "a fixture": [
        write("calc.py", NEW_CODE),
        write("tests/conftest.py", "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n"),
        write("tests/test_new.py", "from calc import add\n\n\ndef test_new(three):\n    assert add(three, 1) == 4\n"),
    ],
    "settings": [
        write("calc.py", NEW_CODE),
        write("pytest.ini", "[pytest]\naddopts = --strict-markers\nmarkers = slow\n"),
    ],
    "tests that a test lists": [
        write("calc_more.py", "def twice(n):\n    return 2 * n\n"),
        write("tests/test_calc_more.py", "from calc_more import twice\n\n\ndef test_twice():\n    assert twice(4) == 8\n"),
    ],
    "code named like tests": [
        write("spec.py", "NAME = 'calc'\n"),
        write("calc.py", NEW_CODE + LAZY),
        write("tests/test_new.py", "from calc import add\n\n\ndef test_new():\n    assert add(3, 1) == 4\n"),
    ],
    "a folder for the code": [  # without its settings no test loads
        ("run_command", {"command": "mkdir src && mv calc.py src/calc.py"}),
        write("pytest.ini", "[pytest]\npythonpath = src\n"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("how", HOSTILE)
def test_what_holds_up_an_old_test_is_refused(make_project: MakeProject, how: str) -> None:
    project = started(make_project, "pytest", OLD, *HOSTILE[how], LOPEN_ORACLE__MUTATION="off")

    ran = project.drive()

    assert ran.code != 0
    told = [f["message"] for f in findings(project) if "does not touch passed before it" in f["message"]]
    (message,) = told
    assert "tests/test_old.py::TestOld::test_old" in message
    assert [check["passed"] for check in checks(ran)][:1] == [False]
    assert project.oracle_requests == []


@pytest.mark.parametrize("how", HONEST)
def test_honest_support_of_tests_completes(make_project: MakeProject, how: str) -> None:
    files = {**OLD, **OTHER, "tests/test_mirror.py": MIRROR}
    if how in {"a fixture", "settings"}:
        files = OLD
    project = started(make_project, "pytest", files, *HONEST[how], LOPEN_ORACLE__MUTATION="off")

    ran = project.drive()

    assert ran.code == 0, (ran.err, findings(project))
    assert "does not touch" not in str(project.oracle_requests)
    assert checks(ran)[0]["output"].startswith("ran the tests that did not change, without")


def test_a_person_allows_tests_to_need_new_support(make_project: MakeProject) -> None:
    project = started(make_project, "pytest", OLD, *HOSTILE["environment"], LOPEN_ORACLE__MUTATION="off")

    ran = project.lopen("approve", "calc", "--yes", "--run", "--allow-test-removal", "tests/*")

    assert ran.code == 0, ran.err
    assert "does not touch passed before it" in str(project.oracle_requests[0]["messages"])


def test_support_that_an_unbuilt_test_needs_is_told(make_project: MakeProject) -> None:
    """The test failed before, too: nobody knows whether it needs the environment or is deceived by it."""
    files = {**OLD, "calc.py": "def add(a, b):\n    return 0\n"}
    project = started(make_project, "pytest", files, *HOSTILE["environment"], LOPEN_ORACLE__MUTATION="off")

    ran = project.drive()

    assert ran.code == 0, ran.err
    shown = str(project.oracle_requests[0]["messages"])
    assert "Do these files test the code, or stand in for it?" in shown


def test_javascript_loaded_before_an_old_test_is_refused(make_project: MakeProject) -> None:
    if shutil.which("node") is None:
        lacking("node")
    code = write("calc.js", "exports.add = () => 3;\n")
    new = NODE.replace("'old'", "'new'").replace(
        "test(", "require('../calc.js').add = (a, b) => a + b;\ntest(", 1
    )
    support = write("test/support.js", "require('../calc.js').add = (a, b) => a + b;\n")
    run = write("package.json", '{"scripts": {"test": "node --require ./test/support.js --test"}}\n')
    files = {
        "calc.js": "exports.add = (a, b) => a + b;\n",
        "test/old.test.js": NODE,
        "package.json": '{"scripts": {"test": "node --test"}}\n',
    }
    project = started(make_project, "npm test", files, code, support, run, write("test/new.test.js", new))

    ran = project.drive()

    assert ran.code != 0
    assert any("does not touch passed before it" in f["message"] for f in findings(project)), findings(
        project
    )
