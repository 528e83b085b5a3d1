"""What lopen finds out about tests by running them, through the real command: errors, questions, the negative control."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.project import UNITTEST, Project, plan, specification, verified
from tests.ran import SHELL_PYTHON

PYTEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {SHELL_PYTHON} -m pytest -q -p no:cacheprovider"
MANY = {"LOPEN_CIRCUIT__SEQUENTIAL_TOOL__THRESHOLD": "50"}
HEAD = "import unittest\nimport unittest.mock\nfrom calc import add\n\n\nclass TestOld(unittest.TestCase):\n    def test_old(self):\n"
CHECK = "        self.assertEqual(add(5, 9), 14)\n"
WEAKENED = {  # the test's body, and what follows it
    "finally": (f"        try:\n    {CHECK}        finally:\n            return\n", ""),
    "rebound": (CHECK, "\n\nfor add in [int.__add__]:\n    pass\n"),
}
CODE = "def add(a, b):\n    return a + b\n"
DONE = "feat(calc): complete Write it in core"


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def started(make_project: MakeProject, command: str, files: dict[str, str], *turns: list[Any]) -> Project:
    calls = [tools(*turn, *verified("calc-t1")) for turn in turns]
    project = make_project([plan(), *calls], **MANY, LOPEN_ORACLE__MUTATION="")
    for path, text in files.items():
        project.write(path, text)
    project.commit("Files")
    project.specify(text=specification(commands={"verify-tests": command}))
    return project


def told(project: Project) -> list[str]:
    """Return the messages of the errors that the model was told."""
    results = [
        r.data for body in project.requests for r in tool_results(body) if r.tool == "verify_task_completion"
    ]
    return [f["message"] for r in results for f in r.get("findings", ()) if f["severity"] == "error"]


def test_tests_that_accept_the_old_code_too_are_asked_about(make_project: MakeProject) -> None:
    files = {f"tests/test_{name}.py": HEAD + CHECK for name in WEAKENED}
    weak = [write(f"tests/test_{name}.py", HEAD + "".join(how)) for name, how in WEAKENED.items()]
    changed = [write("calc.py", "def add(a, b):\n    return 3\n"), *weak]
    new = write(
        "tests/test_new.py",
        "import unittest\nimport calc\n\n\nclass TestNew(unittest.TestCase):\n    def test_new(self):\n        self.assertEqual(calc.add(1, 2), 3)\n",
    )
    project = started(
        make_project, UNITTEST, {"calc.py": CODE, "tests/__init__.py": "", **files}, [*changed, new]
    )

    project.drive()

    shown = str(project.oracle_requests[0]["messages"])
    assert shown.count("fails on the new code, and the new version passes on the old code too") >= len(
        WEAKENED
    )
    assert all(path in shown for path in files)


BLIND = {
    "python": (
        UNITTEST,
        {"calc.py": CODE},
        [write("calc.py", f"{CODE}\n\ndef sub(a, b):\n    return a - b\n"), write("test_sub.py", "import unittest\nimport calc\n\n\nclass TestSub(unittest.TestCase):\n    def test_sub(self):\n        self.assertTrue(calc.sub)\n")],
        [write("test_sub.py", "import unittest\nimport calc\n\n\nclass TestSub(unittest.TestCase):\n    def test_sub(self):\n        self.assertEqual(calc.sub(3, 1), 2)\n")],
    ),
    "node": (
        "node --test",
        {"calc.js": "exports.add = (a, b) => a + b;\n"},
        [write("calc.js", "exports.add = (a, b) => a + b;\nexports.sub = (a, b) => a - b;\n"), write("test/sub.test.js", "const test = require('node:test');\nconst calc = require('../calc.js');\ntest('sub', () => { calc.sub; });\n")],
        [write("test/sub.test.js", "const test = require('node:test');\nconst assert = require('node:assert');\nconst calc = require('../calc.js');\ntest('sub', () => { assert.strictEqual(calc.sub(3, 1), 2); });\n")],
    ),
    "gcc": (
        "make -s check",
        {"Makefile": "check:\n\tgcc -o run calc.c test_calc.c && ./run\n", "calc.c": "int add(int a, int b) { return a + b; }\n", "test_calc.c": "#include <assert.h>\nint add(int, int);\nint main(void) { assert(add(1, 2) == 3); return 0; }\n"},
        [write("calc.c", "int add(int a, int b) { return a + b; }\nint sub(int a, int b) { return a - b; }\n"), write("test_calc.c", "#include <assert.h>\nint add(int, int);\nint sub(int, int);\nint main(void) { assert(add(1, 2) == 3); return 0; }\n")],
        [write("test_calc.c", "#include <assert.h>\nint add(int, int);\nint sub(int, int);\nint main(void) { assert(add(1, 2) == 3); assert(sub(3, 1) == 2); return 0; }\n")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", BLIND)
def test_tests_that_never_call_the_work_are_refused_then_mended(
    make_project: MakeProject, program: str
) -> None:
    if program != "python" and shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    command, files, blind, mended = BLIND[program]
    project = started(make_project, command, files, blind, mended)

    ran = project.drive()

    (error,) = told(project)
    assert (
        "the test command still passes when every function that the work adds or changes fails at its start"
        in error
    )
    assert DONE in project.subjects("lopen/calc"), ran.err
    outputs = [e["output"] for e in ran.named("verification_ran") if e["tool"] == "mutation_check"]
    if program == "gcc":
        assert outputs == [
            "tests still pass when 1 changed function is broken",
            "tests fail when 1 changed function is broken",
        ]
        return
    assert outputs[-1] == "tests noticed 2 of 2 mutants"
    assert any("Mutants: 0 of 2 (" in e["text"] for e in ran.named("progress"))
    assert "Mutants: 0 of" not in project.lopen("log", "-v").out
    (verdict,) = project.oracle_requests
    assert "info: tests noticed 2 of 2 mutants" in str(verdict["messages"])


def test_mutants_that_the_works_own_tests_do_not_notice_meet_all_tests(make_project: MakeProject) -> None:
    before = {
        "calc.py": CODE,
        "test_calc.py": "import calc\n\n\ndef test_sum():\n    assert calc.add(1, 2) == 3\n",
    }
    work = [
        write("calc.py", "def add(a, b):\n    total = a + b\n    return total\n"),
        write("test_own.py", "import calc\n\n\ndef test_it():\n    calc.add(3, 2)\n"),
    ]
    project = started(make_project, PYTEST, before, work)

    ran = project.drive()

    outputs = [e["output"] for e in ran.named("verification_ran") if e["tool"] == "mutation_check"]
    assert outputs == ["tests noticed 2 of 2 mutants"]


def test_a_test_that_ends_the_process_did_not_run(make_project: MakeProject) -> None:
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    ends = "const test = require('node:test');\nprocess.exit(0);\ntest('sub', () => {});\n"
    project = started(
        make_project, "node --test", {"calc.js": "exports.a = 1;\n"}, [write("test/a.test.js", ends)]
    )

    project.drive()

    results = [r for body in project.requests for r in tool_results(body) if r.tool == "verify_tests"]
    assert "no tests were collected" in results[0].text
    assert DONE not in project.subjects("lopen/calc")


def test_unchanged_tests_that_need_new_support_are_asked_about(make_project: MakeProject) -> None:
    stand_in = "import calc\n\ncalc.add = lambda a, b: a + b\n"
    old = f"{HEAD}{CHECK}".replace("from calc import add", "import calc").replace("add(", "calc.add(")
    new = "import calc\n\n\ndef test_three():\n    assert calc.three() == 3\n"
    changed = "def add(a, b):\n    return 3\n\n\ndef three():\n    return 3\n"
    project = started(
        make_project,
        PYTEST,
        {"calc.py": CODE, "tests/test_old.py": old},
        [write("calc.py", changed), write("conftest.py", stand_in), write("tests/test_three.py", new)],
    )

    project.drive()

    shown = str(project.oracle_requests[0]["messages"])
    assert "which the change does not touch, fail without conftest.py" in shown


def test_a_specification_says_which_tests_may_go(make_project: MakeProject) -> None:
    files = {
        "calc.py": CODE,
        "old/__init__.py": "",
        "old/test_old.py": f"{HEAD}{CHECK}",
        "test_new.py": f"{HEAD}{CHECK}",
    }
    remove = ("run_command", {"command": "rm old/test_old.py"})
    change = write("calc.py", "def add(a, b):\n    total = a + b\n    return total\n")
    project = started(make_project, UNITTEST, files, [remove, change])
    text = specification(commands={"verify-tests": UNITTEST})
    project.specify(text=text.replace("- **verify-tests**", "- **tests-may-go**: old/**\n- **verify-tests**"))

    project.drive()

    assert told(project) == []
    assert DONE in project.subjects("lopen/calc")
