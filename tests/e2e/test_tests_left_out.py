"""Tests that the person had, that fail with the change, and that the change keeps from running: the work is refused."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.fake_api import Answer
from tests.preloaded.started import StartedCommand
from tests.project import UNITTEST, code, plan, specification, verified
from tests.ran import SHELL_PYTHON

PYTEST = f"{SHELL_PYTHON} -m pytest -q -p no:cacheprovider"
THREE = ("write_file", {"path": "calc.py", "content": "def add(a, b):\n    return 3\n"})
TEST = code()[1]
OLD = "import unittest\nfrom calc import add\n\n\nclass TestOld(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(add(5, 9), 14)\n"
NODE = "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from '../calc.mjs';\ntest('%s', () => assert.equal(add(%s), %s));\n"
NODE_FILES = {
    "calc.mjs": "export const add = (a, b) => a + b;\n",
    "test/old.test.mjs": NODE % ("old sum", "5, 9", 14),
}
NODE_CHANGE = {"calc.mjs": "export const add = () => 3;\n", "test/new.test.mjs": NODE % ("sum", "1, 2", 3)}
GO = 'package %s\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif got := 5 + 9; got != 14 {\n\t\tt.Fatal(got)\n\t}\n}\n'
GO_FILES = {"go.mod": "module example.org/m\n\ngo 1.19\n", "a_test.go": GO % "m", "sub/a_test.go": GO % "sub"}
RUST = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(5 + 9, 14);\n    }\n}\n"
RUST_FILES = {
    "Cargo.toml": '[package]\nname = "m"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": f"pub mod old;\n{RUST}",
    "src/old.rs": RUST,
}
CASES = {
    "unittest": (UNITTEST, {"tests/__init__.py": "", "tests/test_old.py": OLD}, {}, "rm tests/__init__.py"),
    "pytest": (PYTEST, {"tests/test_old.py": OLD}, {"tests/pyvenv.cfg": "home = /usr\n"}, "true"),
    "make": (
        "make check",
        {"Makefile": f"check:\n\t{UNITTEST}\n", "test_old.py": OLD},
        {"Makefile": f"check:\n\t{UNITTEST} test_calc\n"},
        "true",
    ),
    "go": ("go test ./...", GO_FILES, {"sub/go.mod": "module example.org/n\n\ngo 1.19\n"}, "true"),
    "cargo": ("cargo test", RUST_FILES, {"src/lib.rs": RUST}, "true"),
    "node": ("node --test", NODE_FILES, NODE_CHANGE, "mkdir spec && mv test/old.test.mjs spec/old.spec.mjs"),
}


@pytest.mark.parametrize("runner", CASES)
def test_tests_that_stop_running_refuse_the_work(make_project: MakeProject, runner: str) -> None:
    command, files, written, line = CASES[runner]
    if runner in ("node", "go", "cargo") and shutil.which(runner) is None:
        pytest.skip(f"there is no {runner}")
    change = [("write_file", {"path": path, "content": text}) for path, text in written.items()]
    calls = [THREE, TEST, *change, ("run_command", {"command": line}), *verified("calc-t1")]
    rustup = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".rustup"  # the tests' own HOME has none
    project = make_project([plan(), tools(*calls)], LOPEN_ORACLE__MUTATION="off", RUSTUP_HOME=str(rustup))
    for path, text in {"calc.py": "def add(a, b):\n    return a + b\n", **files}.items():
        project.write(path, text)
    project.git("add", "-A")
    project.git("commit", "-qm", "Files")
    project.specify(text=specification(commands={"verify-tests": command}))

    project.drive()

    results = [r.data for r in tool_results(project.requests[-1]) if r.tool == "verify_task_completion"]
    told = " ".join(str(finding["message"]) for finding in results[0]["findings"])
    tests = "2 tests" if runner in ("go", "cargo") else "1 test"
    assert f"`{command}` ran {tests} before" in told, results
    assert "run no longer: " in told
    assert "feat(calc): complete Write it in core" not in project.subjects("lopen/calc")


def test_a_killed_session_compares_with_its_first_run(make_project: MakeProject) -> None:
    running: list[StartedCommand] = []
    calls = [THREE, TEST, ("run_command", {"command": "rm tests/__init__.py"}), *verified("calc-t1")]

    def answer(body: dict[str, Any]) -> Answer:
        if any(tool["name"] == "record_tasks" for tool in body["tools"]):
            return plan()
        if running[-1].poll() is None and len(running) == 1:
            os.kill(running[0].pid, signal.SIGKILL)
            running[0].wait(60)
        return tools(*calls)

    project = make_project(answer, LOPEN_ORACLE__MUTATION="off")
    for path, text in {
        "calc.py": "def add(a, b):\n    return a + b\n",
        "tests/__init__.py": "",
        "tests/test_old.py": OLD,
    }.items():
        project.write(path, text)
    project.git("add", "-A")
    project.git("commit", "-qm", "Files")
    project.specify(text=specification(commands={"verify-tests": UNITTEST}))
    project.lopen("approve", "calc", "--yes")
    running.append(project.start("run", "calc"))
    running[0].communicate(timeout=120)

    project.resume("--max-iterations", "2")

    told = [str(r.data) for r in tool_results(project.requests[-1]) if r.tool == "verify_task_completion"]
    assert "ran 1 test before" in " ".join(told), told
    assert "run no longer: " in " ".join(told)
