"""Changed tests in their earlier version on the new code, and in the new one on the old code (docs/reference/completion.md)."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.needs import lacking
from tests.project import UNITTEST, Project, plan, specification, verified
from tests.ran import Ran

PYTEST = f'test -z "$PYTEST_ADDOPTS" && {sys.executable} -m pytest -q -p no:cacheprovider'
MANY = {"LOPEN_CIRCUIT__SEQUENTIAL_TOOL__THRESHOLD": "50"}
RUNNERS = {"unittest": UNITTEST, "pytest": PYTEST}
HEAD = "import unittest\nimport unittest.mock\nfrom calc import add\n\n\nclass TestOld(unittest.TestCase):\n    def test_old(self):\n"
CHECK = "        self.assertEqual(add(5, 9), 14)\n"
WEAKENED = {  # (the test's body, what follows it)
    "finally": (f"        try:\n    {CHECK}        finally:\n            return\n", ""),
    "local": (f"        add = int.__add__\n{CHECK}", ""),
    "default": ("        self.assertEqual((lambda add=int.__add__: add(5, 9))(), 14)\n", ""),
    "self": (f"        self = unittest.mock.Mock(unsafe=True)\n{CHECK}", ""),
    "match": (f"        match add:\n            case None:\n        {CHECK}", ""),
    "generator": ("        (self.assertEqual(add(5, 9), 14) for _ in 'a')\n", ""),
    "nested": (f"        def check():\n    {CHECK}\n        check\n", ""),
    "operators": ("        add and None or add is None and self.assertEqual(add(5, 9), 14)\n", ""),
    "suppressed": (f"        with self.subTest(), self.assertRaises((AssertionError, TypeError)):\n            for each in (9, None):\n        {CHECK.replace('9)', 'each)')}", ""),
    "rebound": (CHECK, "\n\nfor add in [int.__add__]:\n    pass\n"),
    "any": ("        self.assertEqual(add(5, 9), unittest.mock.ANY or 14)\n", ""),
    "equality": (f"        self.addTypeEqualityFunc(int, lambda *a, **k: None)\n{CHECK}", ""),
    "itself": ("        self.assertEqual(add(5, 9), add(5, 9))\n", ""),
    "reached": (CHECK, "\n    def __getattribute__(self, n):\n        return (lambda *a: None) if n == 'assert' + 'Equal' else super().__getattribute__(n)\n"),
}  # fmt: skip

CODE = """def add(a, b):
    return a + b


def half(n):
    return n // 2


def scale(n):
    return n * 10


def total(numbers):
    return sum(numbers)


def pair(n):
    return (n, n)


def size(text):
    return len(text)
"""
NEW_CODE = (
    CODE.replace("n // 2", "n / 2")
    .replace("scale(n)", "scale(n, by)")
    .replace("n * 10", "n * by")
    .replace("(n, n)", "[n, n]")
)


def case(name: str, *lines: str, more: str = "") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"import unittest\nimport calc\n{more}\n\nclass TestIt(unittest.TestCase):\n    def test_{name}(self):\n{body}"


HONEST = {  # (path and text before, path and text after)
    "expectation": (
        ("tests/test_half.py", case("half", "self.assertEqual(calc.half(3), 1)")),
        ("tests/test_half.py", case("half", "self.assertEqual(calc.half(3), 1.5)")),
    ),
    "signature": (
        ("tests/test_scale.py", case("scale", "self.assertEqual(calc.scale(3), 30)")),
        ("tests/test_scale.py", case("scale", "self.assertEqual(calc.scale(3, 10), 30)")),
    ),
    "renamed": (
        ("tests/test_total.py", case("total", "self.assertEqual(calc.total([1, 2]), 3)")),
        ("tests/test_total.py", case("sum_of_all", "self.assertEqual(calc.total([1, 2]), 3)")),
    ),
    "moved": (
        ("tests/test_size.py", case("size", "self.assertEqual(calc.size('ab'), 2)")),
        ("tests/unit/test_size.py", case("size", "self.assertEqual(calc.size('ab'), 2)")),
    ),
    "split": (
        ("tests/test_pair.py", case("pair", "self.assertEqual(calc.pair(3), (3, 3))", "self.assertEqual(calc.pair(4), (4, 4))")),
        (
            "tests/test_pair.py",
            case("pair", "self.assertEqual(calc.pair(3), [3, 3])")
            + "\n    def test_pair_of_four(self):\n        self.assertEqual(calc.pair(4), [4, 4])\n",
        ),
    ),
    "mended": (
        ("tests/test_add.py", case("add", "self.assertEqual(calc.add(1, 2), 4)")),
        ("tests/test_add.py", case("add", "self.assertEqual(calc.add(1, 2), 3)")),
    ),
    "table": (
        ("tests/test_rows.py", case("rows", "for a, b in [(1, 1), (2, 2)]:", "    self.assertEqual(calc.add(a, 0), b)")),
        ("tests/test_rows.py", case("rows", "for a, b in [(1, 1), (2, 2), (3, 3)]:", "    self.assertEqual(calc.add(a, 0), b)")),
    ),
    "helper": (
        ("tests/helpers.py", "import calc\n\n\ndef scaled(n):\n    return calc.scale(n)\n"),
        ("tests/helpers.py", "import calc\n\n\ndef scaled(n):\n    return calc.scale(n, by=10)\n"),
    ),
}  # fmt: skip
USES_HELPER = case("scaled", "self.assertEqual(scaled(2), 20)", more="from tests.helpers import scaled\n")


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def started(
    make_project: MakeProject, runner: str, files: dict[str, str], *calls: Any, **given: Any
) -> Project:
    return begun(make_project([plan(), tools(*calls, *verified("calc-t1"))], **given), runner, files)


def begun(project: Project, runner: str, files: dict[str, str]) -> Project:
    for path, text in {"tests/__init__.py": "", "tests/unit/__init__.py": "", **files}.items():
        project.write(path, text)
    project.git("add", "-A")
    project.git("commit", "-qm", "Files")
    project.specify(text=specification(commands={"verify-tests": RUNNERS.get(runner, runner)}))
    return project


def checks(ran: Ran) -> list[dict[str, Any]]:
    return [e for e in ran.named("verification_ran") if e["tool"] == "earlier_tests"]


def findings(project: Project) -> list[dict[str, Any]]:
    results = [r.data for r in tool_results(project.requests[-1]) if r.tool == "verify_task_completion"]
    assert "findings" in results[0], [(r.tool, r.text[:300]) for r in tool_results(project.requests[-1])]
    return list(results[0]["findings"])


@pytest.mark.parametrize("runner", RUNNERS)
def test_hidden_weakenings_are_refused(make_project: MakeProject, runner: str) -> None:
    files = {f"tests/test_{name}.py": HEAD + CHECK for name in WEAKENED}
    weak = [write(f"tests/test_{name}.py", HEAD + "".join(how)) for name, how in WEAKENED.items()]
    code = write("calc.py", "def add(a, b):\n    return 3\n")
    project = started(make_project, runner, {"calc.py": CODE, **files}, code, *weak, **MANY)

    ran = project.drive()

    assert "feat(calc): complete Write it in core" not in project.subjects("lopen/calc")
    found = {f["path"] for f in findings(project) if "accept the old code as well" in f["message"]}
    assert found == set(files)
    (check,) = checks(ran)
    count = len(WEAKENED)
    told = f"ran the earlier versions of {count} changed test files on the new code: {count} tests fail, {count} of them pass"
    assert check["output"].startswith(told), check
    assert project.oracle_requests == []


@pytest.mark.parametrize("runner", RUNNERS)
def test_honest_changes_of_tests_complete(make_project: MakeProject, runner: str) -> None:
    before = dict(old for old, _ in HONEST.values())
    files = {"calc.py": CODE, "tests/test_scaled.py": USES_HELPER, **before}
    calls = [write("calc.py", NEW_CODE), *(write(*new) for _, new in HONEST.values())]
    gone = ("run_command", {"command": "rm tests/test_size.py"})
    project = started(make_project, runner, files, *calls, gone)

    ran = project.drive()

    assert ran.code == 0, (ran.err, findings(project))
    (check,) = checks(ran)  # not made again for the component and the module
    assert "none of them pass on the old code too" in check["output"]
    shown = str(project.oracle_requests[0]["messages"])
    assert "tests whose expectations changed" in shown


NODE = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add } = require('../calc.js');\ntest('old', () => {\n  assert.strictEqual(add(5, 9), 14);\n});\n"
GO = 'package calc\n\nimport "testing"\n\nfunc TestOld(t *testing.T) {\n\tif Add(5, 9) != 14 {\n\t\tt.Fatal("wrong")\n\t}\n}\n'
RUST = "#[test]\nfn old() {\n    assert_eq!(calc::add(5, 9), 14);\n}\n"
INLINE = "mod imp;\npub use imp::add;\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn old() {\n        assert_eq!(add(5, 9), 14);\n    }\n}\n"
LOCK = 'version = 3\n\n[[package]]\nname = "calc"\nversion = "0.1.0"\n'
CARGO = '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n'
SHELL = 'test "$(sh add.sh 5 9)" = 14\n'
PERL = "use Test::More tests => 1;\nis(`sh add.sh 5 9` + 0, 14);\n"
OTHERS = {  # command, code and its change, test and its change, more files
    "node": ("node --test",
        ("calc.js", "exports.add = (a, b) => a + b;\n", "exports.add = () => 3;\n"),
        ("test/old.test.js", NODE, NODE.replace("  assert.s", "  const add = () => 14;\n  assert.s")),
        {}),
    "go": ("go test ./...",
        ("calc.go", "package calc\n\nfunc Add(a, b int) int { return a + b }\n", "package calc\n\nfunc Add(a, b int) int { return 3 }\n"),
        ("old_test.go", GO, GO.replace("{\n\tif", "{\n\tAdd := func(a, b int) int { return 14 }\n\tif")),
        {"go.mod": "module example.org/calc\n\ngo 1.19\n"}),
    "cargo": ("cargo test --offline",
        ("src/lib.rs", "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n", "pub fn add(_: i32, _: i32) -> i32 {\n    3\n}\n"),
        ("tests/old.rs", RUST, "mod calc {\n    pub fn add(a: i32, b: i32) -> i32 {\n        a + b\n    }\n}\n\n" + RUST),
        {"Cargo.toml": CARGO, "Cargo.lock": LOCK}),
    "inline": ("cargo test --offline",
        ("src/imp.rs", "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n", "pub fn add(_: i32, _: i32) -> i32 {\n    3\n}\n"),
        ("src/lib.rs", INLINE, INLINE.replace("        assert", "        let add = |a: i32, b: i32| a + b;\n        assert")),
        {"Cargo.toml": CARGO, "Cargo.lock": LOCK}),
    "prove": ("prove t",
        ("add.sh", "echo $(($1 + $2))\n", "echo 3\n"),
        ("t/old.t", PERL, PERL.replace("is(`sh add.sh 5 9` + 0, 14)", "ok(`sh add.sh 5 9` > 0)")),
        {}),
    "sh": ("sh tests/all.sh", ("add.sh", "echo $(($1 + $2))\n", "echo 3\n"), ("tests/all.sh", SHELL, f"{SHELL}true\n"), {}),
}  # fmt: skip


@pytest.mark.parametrize("program", OTHERS)
def test_hidden_weakenings_in_other_languages_are_refused(make_project: MakeProject, program: str) -> None:
    command, code, (path, before, after), files = OTHERS[program]
    if shutil.which(command.split()[0]) is None:
        lacking(command.split()[0])
    rustup = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".rustup"  # the tests' own HOME has none
    files = {**files, code[0]: code[1], path: before}
    change = [write(code[0], code[2]), write(path, after)]
    project = started(make_project, command, files, *change, RUSTUP_HOME=str(rustup))

    ran = project.drive()

    assert "feat(calc): complete Write it in core" not in project.subjects("lopen/calc")
    (check,) = checks(ran)
    assert ("they fail without naming a test" in check["output"]) is (program in {"sh", "prove"})
    told = [(f["severity"], f["path"]) for f in findings(project) if "accept the old code" in f["message"]]
    assert told == [("error", path)]


DATA = "        import json\n        self.assertIn(add(5, 9), json.load(open('tests/expected.json')))\n"
ONE = {"calc.py": CODE, "tests/test_old.py": HEAD + DATA, "tests/expected.json": "[14]\n"}
BAD = write("calc.py", "def add(a, b):\n    return 3\n")
WEAK = write("tests/expected.json", "[14, 3]\n")


def test_a_weakened_test_is_known_by_another_name(make_project: MakeProject) -> None:
    before, after = (HEAD + "".join(lines) for lines in ((CHECK,), WEAKENED["local"]))
    other = write("tests/test_old.py", after.replace("test_old", "test_the_sum"))
    project = started(make_project, "unittest", {"calc.py": CODE, "tests/test_old.py": before}, BAD, other)

    project.drive()

    (found,) = [f for f in findings(project) if "accept the old code" in f["message"]]
    assert (found["severity"], found["path"]) == ("error", "tests/test_old.py")


def test_weakening_before_the_code_changes_is_found_at_the_component(make_project: MakeProject) -> None:
    first, second = tools(WEAK, *verified("calc-t1")), tools(BAD, *verified("calc-t2"))
    project = make_project([plan(tasks=("Tidy the test", "Write it")), first, second])
    begun(project, "unittest", ONE)

    ran = project.drive()

    assert ran.code != 0
    assert [check["passed"] for check in checks(ran)] == [True, False]


def test_a_link_in_place_of_the_tests_is_refused(make_project: MakeProject) -> None:
    """Behind the link the tests are weaker, and on the old code they are not there."""
    moved = "mkdir t2; sed 's/, 14)/, add(5, 9))/' tests/test_old.py > t2/test_old.py; rm -r tests; ln -s t2 tests"
    files = {"calc.py": CODE, "tests/test_old.py": HEAD + CHECK}
    project = started(make_project, "pytest", files, BAD, ("run_command", {"command": moved}))

    ran = project.drive()

    assert ran.code != 0
    told = [(f["severity"], f["path"]) for f in findings(project) if "a link took the place" in f["message"]]
    assert told == [("error", "tests")]
    assert not any("they fail on the old code" in f["message"] for f in findings(project))


def test_a_person_lets_a_test_become_obsolete(make_project: MakeProject) -> None:
    project = started(make_project, "unittest", ONE, BAD, WEAK)

    ran = project.lopen("approve", "calc", "--yes", "--run", "--allow-test-removal", "tests/*")

    assert ran.code == 0, ran.err
    shown = str(project.oracle_requests[0]["messages"])
    assert "accept the old code as well as the new" in shown
    assert "A person allowed it" in shown
    told = project.lopen("pr", "--print").out
    assert "- calc-t1: ran the earlier versions of" in told


@pytest.mark.parametrize(
    ("constant", "says"), [("LONGEST_TESTS_S", "they run again where"), ("TOTAL_S", "was over")]
)
def test_what_takes_too_long_is_left_out(make_project: MakeProject, constant: str, says: str) -> None:
    project = started(make_project, "unittest", ONE, BAD, WEAK)

    ran = project.lopen(
        "approve", "calc", "--yes", "--run", "--json",
        arrange=[["tests.crash.faults:replace", f"lopen.tools.earlier_tests:{constant}", 0.0]],
    )  # fmt: skip

    assert ran.code == 0, ran.err
    assert says in checks(ran)[0]["output"]
    assert says in str(project.oracle_requests[0]["messages"])


def test_a_killed_check_begins_again(make_project: MakeProject) -> None:
    first, again = tools(BAD, WEAK, *verified("calc-t1")), tools(*verified("calc-t1"))
    project = begun(make_project([plan(), first, again]), "unittest", ONE)
    project.lopen("approve", "calc", "--yes")
    killed = project.lopen(
        "run", "calc",
        arrange=[["tests.crash.faults:die", "lopen.tools.earlier_tests:renamed", "before"]],
    )  # fmt: skip
    assert killed.code == -9, killed.err

    ran = project.resume()

    assert [check["passed"] for check in checks(ran)] == [False]
