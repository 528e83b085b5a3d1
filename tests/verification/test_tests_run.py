"""How many tests a run ran, and which, as runners print it."""

from __future__ import annotations

import pytest

from lopen.verification.test_run import TestRun, read_run, run_from_json

COUNTS = {
    "": None,
    "ok\n": None,
    "====== 2 failed, 3 passed, 1 skipped, 4 deselected in 0.1s ======\n": 5,
    "Ran 3 tests in 0.001s\n\nOK\nRan 1 test in 0.1s\n\nOK\n": 4,
    "Ran 3 tests in 0.001s\n\nOK (expected failures=1, skipped=2)\n": 1,
    "# tests 4\n# pass 4\n": 4,
    "# tests 8\n# suites 2\n# pass 6\n# fail 0\n# cancelled 0\n# skipped 1\n# todo 1\n": 7,
    "ℹ tests 7\nℹ suites 1\n": 7,
    "Tests:       1 skipped, 4 passed, 5 total\n": 4,
    "      Tests  2 failed | 3 passed (5)\n": 5,
    "      Tests  3 passed | 1 skipped | 1 todo (5)\n": 3,
    "  4 passing (5ms)\n  1 pending\n": 4,
    "=== RUN   TestAdd\n    --- PASS: TestAdd/a (0.00s)\nx--- PASS: TestAdd (0.00s)\n--- SKIP: TestB (0.00s)\n": 1,
    "--- FAIL: TestAdd (0.00s)\n": None,
    "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n": 3,
    "     Summary [   0.01s] 6 tests run: 6 passed, 0 skipped\n": 6,
    "5 examples, 0 failures, 2 pending\n": 3,
    "OK (5 tests, 9 assertions)\n": 5,
    "Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 1 ms\n": 3,
    "ok | 2 passed | 1 failed (3ms)\n": 3,
    "100% tests passed, 0 tests failed out of 9\n": 9,
    "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s\n"
    "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 1\n": 1,
}
CARGO = (
    "     Running unittests src/lib.rs (target/debug/deps/m-81c9)\n\nrunning 4 tests\ntest tests::adds ... ok\n"
    "test foo::tests::table::case_1 ... printed\nok\ntest foo::tests::later ... ignored\n"
    "     Running tests/it.rs (target/debug/deps/it-1d98)\n\nrunning 1 test\ntest adds ... ok\n   Doc-tests m\n"
    "test src/lib.rs - add (line 2) ... ok\n"
)
RAN = (
    ("# Subtest: adds\nok 1 - adds\nok 2 - b # SKIP why\n", "test/a.test.js", "sums > adds", True),
    ("ok 1 - b\nok 1 - adds # SKIP why\n", "test/a.test.js", "sums > adds", False),
    ("▶ sums\n  ✔ adds (0.2ms)\n", "test/a.test.js", "sums > adds", True),
    ("✖ adds (0.2ms)\n", "test/a.test.js", "takes", False),
    ("PASS test/a.test.js\nPASS test/b.test.js\n", "web/test/a.test.js", "adds", True),
    (" ✓ src/a.test.ts (2 tests) 3ms\n", "src/c.test.ts", "adds", False),
    ("--- PASS: TestAdd (0.00s)\n", "sub/a_test.go", "TestAdd", True),
    ("--- PASS: TestAdd (0.00s)\nok  \tm\t0.01s\nok  \tm/sub\t0.01s\n", "sub/a_test.go", "TestAdd", False),
    ("--- PASS: TestAdd/a_b (0.00s)\nok  \tm\t0.01s\nok  \tm/sub\t0.01s\n", "a_test.go", "TestAdd/a b", True),
    ("--- SKIP: TestAdd (0.00s)\n--- PASS: TestB (0.00s)\nok  \tm\t0.01s\n", "a_test.go", "TestAdd", False),
    ("ok  \texample.org/m\t0.01s\nok  \texample.org/m/sub\t(cached)\n", "sub/a_test.go", "TestAdd", True),
    ("ok  \texample.org/m\t0.01s\n", "sub/a_test.go", "TestAdd", False),
    ("test tests::adds ... ok\n", "src/lib.rs", "tests::adds", True),
    (CARGO, "src/lib.rs", "tests::adds", True),
    (CARGO, "crates/m/src/foo/mod.rs", "tests::adds", False),
    (CARGO, "src/foo.rs", "tests::table", True),
    (CARGO, "src/foo.rs", "tests::later", False),
    (CARGO, "tests/it.rs", "adds", True),
    (CARGO, "tests/other.rs", "adds", False),
    ("1 passed in 0.1s\n", "tests/test_a.py", "test_a", None),
    ("OK\n", "test/a.test.js", "adds", None),
)


@pytest.mark.parametrize("output", COUNTS)
def test_the_number_of_tests_is_read_from_the_summary(output: str) -> None:
    assert read_run(output, (), TestRun()).count == COUNTS[output]


@pytest.mark.parametrize(("output", "path", "name", "ran"), RAN)
def test_the_output_tells_whether_a_test_ran(output: str, path: str, name: str, *, ran: bool | None) -> None:
    assert read_run(output, (), TestRun()).ran(path, name) is ran


def test_a_record_tells_more_than_the_output() -> None:
    noted = read_run("1 passed in 0.1s\n", ["tests/test_a.py::TestA::test_a"], TestRun(2))

    assert noted.count == 2
    assert noted.ran("web/tests/test_a.py", "TestA::test_a")
    assert noted.ran("tests/test_a.py", "TestB::test_a") is False
    assert run_from_json(noted.to_json()) == noted
    assert TestRun().ran("tests/test_a.py", "test_a") is None
