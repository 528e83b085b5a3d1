"""Two runs of a test command, beside the text of the change between them."""

from __future__ import annotations

import pytest

from lopen.verification.compared_tests import compare_tests
from lopen.verification.findings import Finding
from lopen.verification.no_longer_run import no_longer_run, not_reported
from lopen.verification.test_files import ExaminedChange, FileChange
from lopen.verification.test_run import TestRun

A = "from calc import add\n\n\ndef test_five():\n    assert add(5, 9) == 14\n\n\ndef test_two():\n    assert add(2, 2) == 4\n"
FIVE = A.split("\n\n\ndef test_two")[0] + "\n"
TABLE = "import pytest\nfrom calc import add\n\n\n@pytest.mark.parametrize('a, b, c', [(5, 9, 14), (2, 2, 4)])\ndef test_all(a, b, c):\n    assert add(a, b) == c\n"
JS = "test('five', () => {\n  expect(add(5, 9)).toBe(14);\n});\ntest('two', () => {\n  expect(add(2, 2)).toBe(4);\n});\n"
NESTED = f"describe('adds', () => {{\n{JS}}});\n"
PARTS = JS.replace("test('two', () => {", "test.describe('two', () => {\n  test('adds', () => {").replace(
    "(4);\n", "(4);\n  });\n"
)
# Titles of one test, and what a runner prints for them
TITLES = {
    "'adds → b'": "adds → b", r"'adds \'a\' \u2192 \ud83d\ude00'": "adds 'a' → 😀", "TITLE": "one title", "'a ' + 'b'": "a b", "`of ${f({ a })} x`": "of 7 x",
    "Foo.name": "Foo", f"'{'long' * 60}'": "long" * 60, "'two'": "two",
}  # fmt: skip
SUMS = A.replace("\n\n\ndef test_two():", "").replace("five", "sums")
METHOD = "def test_sum(self):\n        assert add(2, 2) == 4\n"
CLASS = f"class TestSums:\n    {METHOD}"
T = "tests/test_a.py"
INHERITED = f"{T}::TestSums::test_sum"
# What looks like a test, and no runner takes for one here
NO_TESTS = {
    "tests/conftest.py": "@pytest.fixture\ndef test_client():\n    return Client()\n",
    "tests/helpers.py": "def test_user():\n    return User()\n",
    "tests/test_b.py": "def made():\n    def test_inner():\n        assert 1\n\n    return test_inner\n",
    "tests/test_c.py": "if sys.platform == 'win32':\n    def test_here():\n        assert 1\n",
    "tests/test_d.py": "numpy = pytest.importorskip('numpy')\n\n\ndef test_here():\n    assert 1\n",
    "a.test.js": "for (const [name, f] of CASES) test(name, f);\nfor (const kind of KINDS) describe(kind, () => { it('goes', () => { ok(kind); }); });\n",
    "b.test.js": "it('is to be written');\n",
    "a_test.go": "package a\n\nfunc TestMain(m *testing.M) { m.Run() }\n\nfunc ExampleAdd() { fmt.Println(1) }\n",
    "b_test.go": "//go:build slow\n\npackage a\n\nfunc TestAdd(t *testing.T) { if 1 != 1 { t.Fatal() } }\n",
    "b_windows_test.go": "package a\n\nfunc TestAdd(t *testing.T) { if 1 != 1 { t.Fatal() } }\n",
    "src/test/java/AddIT.java": "class AddIT {\n  @Test void adds() { assertEquals(2, add(1, 1)); }\n}\n",
}
BOTH = (f"{T}::test_five", f"{T}::test_two")


def run(count: int | None, *tests: str, **kinds: tuple[str, ...]) -> TestRun:
    return TestRun(count, {"python": tests, **kinds} if tests else kinds)


Case = tuple[list[FileChange], TestRun, TestRun, str]
CASES: dict[str, Case] = {
    "nothing changed and one is gone": ([], run(2, *BOTH), run(1, BOTH[0]), "ran 2 tests before this change and runs 1 now; run no longer: test_two"),
    "another one runs instead": ([], run(2, *BOTH), run(2, BOTH[0], "test_b.py::test_b"), "runs 2 now; run no longer: test_two"),
    "moved to where it does not run": ([FileChange(T, A, None), FileChange("build/test_a.py", None, A)], run(2, *BOTH), run(1, "test_b.py::test_b"), "run no longer: test_five, test_two"),
    "moved to where it runs": ([FileChange(T, A, None), FileChange("unit/test_a.py", None, A)], run(2, *BOTH), run(2, "unit/test_a.py::test_five", "unit/test_a.py::test_two"), ""),
    "deleted": ([FileChange(T, A, FIVE)], run(2, *BOTH), run(1, BOTH[0]), "run no longer: test_two"),
    "deleted, and no run of the base is known": ([FileChange(T, A, FIVE)], run(None), run(1, BOTH[0]), "run no longer: test_two"),
    "deleted, and never ran": ([FileChange("tests/old.py", A, FIVE)], run(2, *BOTH), run(2, *BOTH), ""),
    "skipped": ([FileChange(T, A, A.replace("def test_two", "@pytest.mark.skip\ndef test_two"))], run(2, *BOTH), run(1, BOTH[0]), "run no longer: test_two"),
    "renamed": ([FileChange(T, A, A.replace("test_two", "test_pair"))], run(2, *BOTH), run(2, BOTH[0], f"{T}::test_pair"), ""),
    "replaced by one that is merely alike": ([FileChange(T, A, A.replace("test_two", "test_pair").replace("== 4", "== 5"))], run(2, *BOTH), run(2, BOTH[0], f"{T}::test_pair"), "run no longer: test_two"),
    "renamed with its function": ([FileChange(T, A, A.replace("add", "plus").replace("test_two", "test_pair"))], run(2, *BOTH), run(2, BOTH[0], f"{T}::test_pair"), ""),
    "split in two": ([FileChange(T, SUMS, A)], run(1, f"{T}::test_sums"), run(2, *BOTH), ""),
    "put into a class that others inherit": ([FileChange(T, CLASS, f"class Sums:\n    {METHOD}\n\nclass TestSums(Sums):\n    pass\n")], run(1, INHERITED), run(1, INHERITED), ""),
    "an inherited one is deleted": ([FileChange(T, f"class Sums:\n    {METHOD}\n\nclass TestSums(Sums):\n    pass\n", "class TestSums:\n    pass\n")], run(3, INHERITED, *BOTH), run(2, *BOTH), "run no longer: Sums::test_sum"),
    "deleted, and marked to run here": ([FileChange(T, A.replace("def test_two", "@pytest.mark.skipif(WINDOWS)\ndef test_two"), FIVE)], run(2, *BOTH), run(1, BOTH[0]), "run no longer: test_two"),
    "made a table": ([FileChange(T, A, TABLE)], run(2, *BOTH), run(2, f"{T}::test_all"), ""),
    "made by a program": ([], run(3, *BOTH, f"{T}::test_made_3"), run(2, *BOTH), ""),
    "the same names": ([], run(9, *BOTH), run(7, *BOTH), ""),
    "fewer, and nothing deleted": ([], run(5), run(3), "ran 5 tests before this change and runs 3 now; 2 tests run no longer"),
    "deleted, where the runner names files": ([FileChange("a.test.js", JS, JS.split("test('two'")[0])], run(5), run(4), "run no longer: two"),
    "more": ([], run(3), run(5), ""),
    "a file that runs no longer": ([], run(4, file=("a.test.js", "b.test.js")), run(2, file=("b.test.js",)), "run no longer: five, two"),
    "into a group": ([FileChange("a.test.js", JS, NESTED)], run(2, script=("a.test.js::five", "a.test.js::two")), run(2, script=("a.test.js::adds > five", "a.test.js::adds > two")), ""),
    "into a group of its name": ([FileChange("a.test.js", JS, PARTS)], run(2, script=("a.test.js::five", "a.test.js::two")), run(2, script=("a.test.js::five", "a.test.js::two > adds")), ""),
    "a package that runs no longer": ([], run(None, package=("m", "m/sub")), run(None, package=("m",)), "runs other tests than before this change; run no longer: TestAdd"),
    "a package that names nothing any more": ([], run(1, go=("m/sub::TestAdd",), package=("m/sub",)), run(None, package=("m/sub",)), "run no longer: TestAdd"),
}  # fmt: skip
UNCHANGED = {
    T: A,
    "a.test.js": JS,
    "sub/a_test.go": 'package sub\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif 1 != 1 {\n\t\tt.Fatal("no")\n\t}\n}\n',
}


def found(changes: list[FileChange], before: TestRun, after: TestRun, may_go: str = "") -> list[Finding]:
    touched = {change.path for change in changes}
    change = ExaminedChange(
        "base",
        "tree",
        (),
        changes,
        lambda wanted: {p: t for p, t in UNCHANGED.items() if wanted(p) and p not in touched},
        lambda _: None,
        "calc",
        lambda _: may_go,
    )
    return list(no_longer_run(change, compare_tests(changes), before, after, "make test"))


@pytest.mark.parametrize("title", CASES)
def test_tests_that_run_no_longer_are_an_error_with_its_way_out(title: str) -> None:
    changes, before, after, says = CASES[title]

    findings = found(changes, before, after)

    assert bool(findings) is bool(says), findings
    assert all(each.severity == "error" and says in each.message for each in findings), findings
    assert all(
        "--allow-test-removal '" in each.message and "tests-may-go" in each.message for each in findings
    )
    assert {each.severity for each in found(changes, before, after, "A person allowed it.")} <= {"info"}


@pytest.mark.parametrize("title", TITLES)
def test_a_title_is_compared_as_a_runner_prints_it(title: str) -> None:
    changes = [FileChange("a.test.js", JS, JS.replace("'five'", title))]
    before = run(2, script=("a.test.js::five", "a.test.js::two"))
    after = run(2, script=(f"a.test.js::{TITLES[title]}", "a.test.js::two"))

    assert found(changes, before, after) == []
    assert list(not_reported(compare_tests(changes), after, "make test")) == []


@pytest.mark.parametrize(
    ("added", "lost"),
    [('@DisplayName("sum")', 0), ('@ParameterizedTest(name = "{0}")', 0), ("@Timeout(5)", 1)],
)
def test_a_shown_name_in_java_is_not_the_methods(added: str, lost: int) -> None:
    java = "class CalcTest {\n  @Test void five() { assertEquals(14, add(5, 9)); }\n}\n"
    changes = [FileChange("CalcTest.java", java, java.replace("@Test", f"@Test {added}"))]
    before, after = (run(1, java=(f"CalcTest.java::CalcTest::{name}",)) for name in ("five", "sum"))

    assert len(found(changes, before, after)) == lost


def test_a_smaller_number_beside_changed_data_is_a_warning() -> None:
    data = FileChange("tests/rows.csv", "1\n2\n", "1\n")

    (finding,) = found([data], run(5), run(4))

    assert finding.severity == "warning"


def test_a_new_test_that_was_not_reported_is_an_error() -> None:
    compared = compare_tests([FileChange(T, FIVE, A)])
    skipped = TestRun(1, {"python": BOTH[:1]}, (BOTH[1],))

    (finding,) = not_reported(compared, run(1, BOTH[0]), "make test")

    assert (finding.severity, finding.path) == ("error", T)
    assert "test_two" in finding.message
    assert list(not_reported(compared, skipped, "make test")) == []
    assert list(not_reported(compared, run(2, *BOTH), "make test")) == []
    elsewhere = compare_tests([FileChange("benchmarks/test_speed.py", None, A)])
    (finding,) = not_reported(elsewhere, run(2, *BOTH), "make test")
    assert finding.severity == "warning"


@pytest.mark.parametrize("path", NO_TESTS)
def test_no_report_is_missed_of_what_is_no_test_here(path: str) -> None:
    ran = run(6, *BOTH, script=("c.test.js::c",), go=("a::TestOther",), java=("BTest.java::BTest::adds",))

    assert list(not_reported(compare_tests([FileChange(path, None, NO_TESTS[path])]), ran, "make test")) == []
