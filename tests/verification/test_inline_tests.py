"""One version of a Rust file with the inline tests of another one in it."""

from __future__ import annotations

import pytest

from lopen.verification.earlier_tests import with_inline_changes, with_tests_of
from lopen.verification.test_files import FileChange

FILE = """pub fn half(n: i32) -> i32 {{ {code} }}

#[cfg(test)]
mod tests {{
    use super::*;
{tests}}}
"""
OLD = "    /// Halves.\n    #[test]\n    fn halves() { assert_eq!(half(4), 2); }\n"
NEW = "    #[test]\n    #[allow(unused)]\n    fn halves() { assert!(half(4) > 0); }\n"
ADDED = "    #[test]\n    fn rounds() { assert_eq!(half(3), 1); }\n"
HELPER = "    fn rounds() { half(3); }\n"


def file(code: str, *tests: str) -> str:
    return FILE.format(code=code, tests="".join(tests))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (file("n / 3", NEW), file("n / 2", OLD), file("n / 3", OLD)),
        (file("n / 3", NEW, ADDED), file("n / 2", OLD), file("n / 3", OLD, ADDED)),
        (file("n / 2", OLD), file("n / 3", ADDED, NEW), file("n / 2", NEW)),
        (file("n / 2", OLD, HELPER), file("n / 2", OLD, ADDED), file("n / 2", OLD, HELPER)),
        ("pub fn half() {}\n", file("n / 2", OLD), "pub fn half() {}\n"),
    ],
)
def test_tests_change_and_the_code_stays(ours: str, theirs: str, expected: str) -> None:
    found = with_tests_of(ours.encode(), theirs).decode()

    assert found.split() == expected.split()


def test_only_files_whose_own_tests_differ_count() -> None:
    before, other_code, other_test = file("n / 2", OLD), file("n / 3", OLD), file("n / 2", NEW)
    changes = [
        FileChange("src/code.rs", before, other_code),
        FileChange("src/test.rs", before, other_test),
        FileChange("src/new.rs", None, other_test),
    ]

    assert [change.path for change in with_inline_changes(changes)] == ["src/test.rs"]
