"""What lopen records of runs in Node, Go, Rust and Java: real runs of what a machine has, else reports as runners write them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.verification.recorded_runs import recorded_run

NODE = {
    "test/a.test.js": "const { test, describe, it } = require('node:test');\n"
    "test('top → end', () => {});\ndescribe('sums', () => { it('adds', () => {}); it.skip('later', () => {}); });\n"
    "test('parent', async (t) => { await t.test('child', () => {}); });\n"
    "test('to do', { todo: true }, () => { throw new Error('not yet'); });\n",
    "bad/b.test.mjs": "import { test } from 'node:test';\ntest('bad', () => { throw new Error('no'); });\n",
    "plain.js": "if (process.env.NODE_OPTIONS) console.log('preloaded');\n",
}
# Runners that are packages: what they do with the option that lopen adds, with what they tell there
JEST = {
    "testResults": [
        {
            "testFilePath": "@/a.test.js",
            "testResults": [
                {"ancestorTitles": ["sums"], "title": "adds 1", "status": "passed"},
                {"ancestorTitles": [], "title": "later", "status": "pending"},
                {"ancestorTitles": [], "title": "one day", "status": "todo"},
            ],
        }
    ]
}
PACKAGES = {
    "jest.js": "const option = process.argv.find((word) => word.startsWith('--testResultsProcessor='));\n"
    f"const told = JSON.parse({json.dumps(json.dumps(JEST))}.replaceAll('@', process.cwd()));\n"
    "setImmediate(() => {  // when the tests run, their process.argv is as it was\n"
    "  if (process.argv.length !== 2 || require(option.split('=')[1])(told) !== told) process.exit(3);\n"
    "});\n",
    "vitest.mjs": "const files = process.argv.filter((word) => word.startsWith('--reporter=')).map((word) => word.slice(11));\n"
    "const { default: Reporter } = await import(files.pop());\n"
    "const test = (fullName, state) => ({ fullName, result: () => ({ state }) });\n"
    "const tests = [test('sums > adds 1', 'passed'), test('later', 'skipped')];\n"
    "new Reporter().onTestRunEnd([{ moduleId: process.cwd() + '/a.test.js', children: { allTests: () => tests } }]);\n"
    "if (files.join() !== 'default') process.exit(3);\n",
    "old/vitest.mjs": "const file = process.argv.at(-1).slice(11);\nconst { default: Reporter } = await import(file);\n"
    "const task = { name: 'sums', tasks: [{ name: 'adds 1', result: { state: 'pass' } }, { name: 'later', mode: 'skip' }] };\n"
    "new Reporter().onFinished([{ filepath: process.cwd() + '/a.test.js', name: 'a.test.js', tasks: [task] }]);\n",
    "own/vitest.mjs": "process.exit(process.argv.length - 2);\n",
    "own/vitest.config.ts": "export default { test: { reporters: ['dot'] } };\n",
    "processor/jest.js": "const { argv } = process;\nif (argv.includes('--testResultsProcessor')) process.exit(3);\n"
    "const Reporter = require(argv.at(-1).split('--reporters=')[1]);\n"
    f"new Reporter().onRunComplete([], JSON.parse({json.dumps(json.dumps(JEST))}.replaceAll('@', process.cwd())));\n"
    "process.exit(argv.at(-2) === '--reporters=default' ? 0 : 3);\n",
    "processor/jest.config.js": "module.exports = { testResultsProcessor: './ours.js' };\n",
    "nested/mocha.js": "const { spawnSync } = require('child_process');\n"
    "const failing = \"require('node:test')('bad', () => { throw new Error('no'); })\";\n"
    "require('fs').writeFileSync('bad.test.cjs', failing);\n"
    "if (spawnSync(process.execPath, ['--test', 'bad.test.cjs']).status !== 1) process.exit(3);\n"
    "require('fs').writeFileSync('test_bad.py', 'def test_bad():\\n    assert False\\n');\n"
    f"if (spawnSync({json.dumps(sys.executable)}, ['-m', 'pytest', '-q', 'test_bad.py']).status !== 1) process.exit(3);\n"
    "if (process.argv.at(-1) !== 'a.test.js') process.exit(3);\n",
    "mocha.js": "const { mochaHooks } = require(process.argv.at(-1).split('=')[1]);\n"
    "const currentTest = { file: process.cwd() + '/a.test.js', state: 'passed', titlePath: () => ['sums', 'adds 1'] };\n"
    "for (const _ of [1, 2]) mochaHooks.afterEach.call({ currentTest });\n",
}
GO = {
    "go.mod": "module example.org/m\n\ngo 1.19\n",
    "a_test.go": 'package m\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) { t.Run("a row", func(t *testing.T) { print() }) }\n'
    'func TestLater(t *testing.T) { t.Skip("no") }\n',
    "sub/a_test.go": 'package sub\n\nimport (\n\t"fmt"\n\t"testing"\n)\n\nfunc TestAdd(t *testing.T) { fmt.Print("x") }\n',
}
RUST = {
    "Cargo.toml": '[package]\nname = "m"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "mod foo;\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n    #[test]\n    #[ignore]\n    fn later() {}\n}\n",
    "src/foo.rs": "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n}\n",
    "tests/it.rs": "#[test]\nfn it() {}\n",
}
S = "test/a.test.js"
RUNS: dict[str, tuple[dict[str, str], str, int | None, dict[tuple[str, str], bool]]] = {
    "node": (NODE, "node --test test", 5, {(S, "top → end"): True, (S, "sums > adds"): True, (S, "sums > later"): False, (S, "parent > child"): True, (S, "to do"): True, ("test/b.test.js", "top"): False}),
    "node with a destination": (NODE, "node --test --test-reporter spec --test-reporter-destination=stdout test", 5, {(S, "top → end"): True}),
    "jest": (PACKAGES, "node jest.js", 1, {("a.test.js", "sums > adds %i"): True, ("a.test.js", "later"): False, ("a.test.js", "sums > takes %i"): False}),
    "vitest": (PACKAGES, "node vitest.mjs run", 1, {("web/a.test.js", "sums > adds $count"): True, ("web/a.test.js", "later"): False}),
    "vitest 2": (PACKAGES, "node old/vitest.mjs run --reporter=verbose", 1, {("a.test.js", "sums > adds ${count}"): True, ("a.test.js", "sums > later"): False}),
    "vitest with reporters": (PACKAGES, "cd own && node vitest.mjs", None, {}),
    "mocha": (PACKAGES, "node mocha.js", 1, {("a.test.js", "sums > adds 1"): True, ("a.test.js", "adds"): False}),
    "jest with a processor": (PACKAGES, "cd processor && node jest.js", 1, {("a.test.js", "sums > adds %i"): True}),
    "mocha whose tests start runners": (PACKAGES, "cd nested && node mocha.js -- a.test.js", None, {}),
    "go": (GO, "go test ./...", 2, {("a_test.go", "TestAdd"): True, ("a_test.go", "TestAdd/a row"): True, ("a_test.go", "TestLater"): False, ("sub/a_test.go", "TestAdd"): True, ("sub/a_test.go", "TestB"): False}),
    "cargo": (RUST, "cargo test --offline", 3, {("src/lib.rs", "tests::adds"): True, ("src/lib.rs", "tests::later"): False, ("src/foo.rs", "tests::adds"): True, ("tests/it.rs", "it"): True}),
}  # fmt: skip
SUREFIRE = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="org.m.CalcTest" tests="6" errors="0" skipped="1" failures="{failures}">\n'
    '  <testcase name="adds" classname="org.m.CalcTest" time="0.01"/>\n'
    '  <testcase name="table(int)[1]" classname="org.m.CalcTest" time="0.01"/>\n'
    '  <testcase name="later" classname="org.m.CalcTest"><skipped message="no"/></testcase>\n'
    '  <testcase name="{shown}" classname="org.m.ShownTest"/>\n'
    '  <testcase name="adds()" classname="org.m.ShownTest"/>\n  <testcase name="inside" classname="org.m.CalcTest$Inner">{failure}</testcase>\n</testsuite>\n'
)


@pytest.mark.parametrize("title", RUNS)
def test_a_run_is_recorded_by_name(tmp_path: Path, title: str) -> None:
    files, line, count, names = RUNS[title]
    program = line.split()[0].replace("cd", "node")
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")

    record, ran = recorded_run(tmp_path, files, line)

    found = record.test_run(ran.output)
    assert ran.exit_code == 0, ran.output
    assert found.count == count, (ran.output, [*record.lines(ran.output)])
    assert {key: found.ran(*key) for key in names} == names, found
    assert record.why_not_passed(ran) == ""
    if title in ("go", "cargo"):
        assert "tests are named in what it printed" in next(record.lines(ran.output))


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_a_failed_run_in_node_stays_failed(tmp_path: Path) -> None:
    record, ran = recorded_run(tmp_path, NODE, "node --test bad || node plain.js")

    assert (ran.exit_code, "preloaded" in ran.output) == (0, True)
    assert "node itself counted 1 failed tests" in record.why_not_passed(ran)
    assert "not ok 1 - bad" in ran.output  # as it prints without a record


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_node_runs_the_files_that_are_asked_for(tmp_path: Path) -> None:
    files = NODE | {"test/c.test.js": "require('node:test')('other', () => {});\n"}

    record, ran = recorded_run(tmp_path, files, "node --test", "stop", "only test/c.test.js::other")

    assert record.test_run(ran.output).names["script"] == ("test/c.test.js::other",)
    for line, told in {"jest.js --ci": r"a\.test\.js$ --ci", "vitest.mjs run -u": "run a.test.js -u"}.items():
        says = {line.split()[0]: "console.log(process.argv.slice(2).join(' '));\n", "a.test.js": ""}
        _, ran = recorded_run(tmp_path / line, says, f"node {line}", "only a.test.js::adds")
        assert ran.output.startswith(f"{told} "), "before all options, which take what stands behind them"


@pytest.mark.parametrize(
    ("build", "folder", "shown"),
    [
        ("pom.xml", "target/surefire-reports", "sums two numbers"),
        ("build.gradle.kts", "build/test-results/test", "repetition 1 of 2"),
    ],
)
def test_reports_of_java_are_read_once_they_are_written(
    tmp_path: Path, build: str, folder: str, shown: str
) -> None:
    old = SUREFIRE.format(failures=0, failure="", shown=shown)
    files = {
        f"core/{build}": "",
        f"core/{folder}/TEST-org.m.Old.xml": old,
        "core/report.xml": SUREFIRE.format(failures=1, failure='<failure message="no"/>', shown=shown),
    }

    record, ran = recorded_run(
        tmp_path,
        files,
        f"cp core/report.xml core/{folder}/TEST-org.m.CalcTest.xml; ln -s /etc/passwd core/{folder}/TEST-x.xml",
    )

    found = record.test_run(ran.output)
    path = "core/src/test/java/org/m/CalcTest.java"
    names = {
        "CalcTest::adds": True,
        "CalcTest::table": True,
        "CalcTest::later": False,
        "CalcTest::Inner::inside": True,
    }
    assert found.count == 5
    assert found.reported(path, "CalcTest::later")
    assert {name: found.ran(path, name) for name in names} == names
    other = "core/src/test/kotlin/org/m/ShownTest.kt"
    assert [found.ran(other, f"ShownTest::{name}") for name in ("adds", "sums")] == [True, None]
    assert found.ran("core/src/test/java/org/m/OtherTest.java", "OtherTest::adds") is False
    assert "itself counted 1 failed tests" in record.why_not_passed(ran)
