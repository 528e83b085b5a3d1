"""New code has tests; commit subjects follow the convention."""

from __future__ import annotations

import pytest

from lopen.guardrails.completion import holds_inline_tests, is_source, is_test, untested

TESTS = [
    "tests/test_login.py",
    "src/app/login_test.py",
    "app/tests.py",
    "tests/conftest.py",
    "tests/helpers/people.py",
    "src/login.test.ts",
    "src/login.spec.tsx",
    "src/__tests__/login.js",
    "test/login.mjs",
    "e2e/login.ts",
    "pkg/login_test.go",
    "tests/login.rs",
    "src/login/tests.rs",
    "src/test/java/org/x/Login.java",
    "src/main/java/org/x/LoginTest.java",
    "LoginIT.java",
    "TestLogin.java",
]
SOURCES = [
    "src/app/login.py",
    "src/latest/contest.py",
    "app/testing.py",
    "attest.py",
    "src/login.ts",
    "src/latest.js",
    "src/inspect.tsx",
    "pkg/login.go",
    "pkg/test/login.go",
    "src/login.rs",
    "src/attest.rs",
    "src/main/java/org/x/Login.java",
    "src/main/java/org/x/Testament.java",
    "Submit.java",
]
NEITHER = [
    "README.md",
    "data/test.json",
    "src/__init__.py",
    "setup.py",
    "types/login.d.ts",
    "vite.config.ts",
    ".eslintrc.js",
    "doc.go",
    "build.rs",
    "package-info.java",
    "Makefile",
    "lib/login.rb",
]


@pytest.mark.parametrize("path", TESTS)
def test_tests_are_told_by_name_or_place(path: str) -> None:
    assert is_test(path)
    assert not is_source(path)


@pytest.mark.parametrize("path", SOURCES)
def test_sources_are_no_tests(path: str) -> None:
    assert is_source(path)
    assert not is_test(path)


@pytest.mark.parametrize("path", NEITHER)
def test_other_files_are_neither(path: str) -> None:
    assert not is_source(path)
    assert not is_test(path)


def test_new_code_without_a_test_is_named() -> None:
    said = untested(["b.py", "a.py", "README.md"], ["a.py", "b.py", "README.md", "c.py"])
    assert said.startswith("New code without a test: a.py, b.py.")


@pytest.mark.parametrize(
    ("added", "changed", "inline"),
    [
        ([], ["a.py"], ()),
        (["README.md"], ["README.md"], ()),
        (["a.py", "tests/test_a.py"], ["a.py", "tests/test_a.py"], ()),
        (["a.py"], ["a.py", "tests/test_old.py"], ()),
        (["src/a.rs"], ["src/a.rs"], ("src/a.rs",)),
        (["tests/test_a.py"], ["tests/test_a.py"], ()),
    ],
)
def test_nothing_is_said_where_tests_came_along_or_no_code_did(
    added: list[str], changed: list[str], inline: tuple[str, ...]
) -> None:
    assert untested(added, changed, inline) == ""


@pytest.mark.parametrize(
    ("content", "holds"),
    [
        ("#[cfg(test)]\nmod tests {}", True),
        ("#[test]\nfn it() {}", True),
        ("#[tokio::test]\nasync fn it() {}", True),
        ("#[cfg(all(test, unix))]\nmod tests {}", True),
        ("#[cfg(testing)]\nmod x {}", False),
        ("fn test() {}", False),
    ],
)
def test_rust_keeps_tests_beside_the_code(content: str, holds: bool) -> None:
    assert holds_inline_tests("src/a.rs", content) is holds
    assert not holds_inline_tests("src/a.py", content)
