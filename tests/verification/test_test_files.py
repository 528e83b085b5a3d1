"""Which files are tests, or support tests, by their paths."""

from __future__ import annotations

import pytest

from lopen.verification.test_files import looks_like_test

TESTS = (
    "tests/test_login.py", "src/app/login_test.py", "app/tests.py", "tests/conftest.py", "tests/helpers/people.py",
    "src/login.test.ts", "src/login.spec.tsx", "src/__tests__/login.js", "test/login.mjs", "e2e/login.ts", "pkg/login_test.go",
    "tests/login.rs", "src/login/tests.rs", "src/test/java/org/x/Login.java", "src/main/java/org/x/LoginTest.java",
    "LoginIT.java", "TestLogin.java", "test_count.c", "tests/login_test.cc",
)  # fmt: skip
OTHERS = (
    "src/app/login.py", "src/latest/contest.py", "app/testing.py", "attest.py", "src/latest.js", "src/inspect.tsx",
    "pkg/login.go", "src/attest.rs", "src/main/java/org/x/Testament.java", "Submit.java", "README.md", "src/ctest.c",
)  # fmt: skip


@pytest.mark.parametrize("path", [*TESTS, *OTHERS])
def test_tests_are_told_by_name_or_place(path: str) -> None:
    assert looks_like_test(path) is (path in TESTS)
