"""The quality rule that holds without being asked for: new code has tests. (Commits are lopen's own: `lopen.git.message`.)

Tests are told by where they lie and what they are called, for Python, JavaScript, TypeScript, Go, Rust and
Java. Files in other languages are neither source nor test here: silence beats a false alarm.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from lopen.guardrails.wording import listing

LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "javascript",
    ".tsx": "javascript",
    ".mts": "javascript",
    ".cts": "javascript",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
}
TEST_FOLDERS = {
    "python": {"tests", "test"},
    "javascript": {"tests", "test", "__tests__", "e2e", "cypress"},
    "go": set[str](),
    "rust": {"tests"},
    "java": {"test", "androidTest", "integrationTest"},
}
TEST_NAMES = {
    "python": re.compile(r"(test_.*|.*_test|tests?|conftest)\.py$"),
    "javascript": re.compile(r".*[._-](test|spec)\.[cm]?[jt]sx?$|(test|spec)\.[cm]?[jt]sx?$"),
    "go": re.compile(r".*_test\.go$"),
    "rust": re.compile(r"(.*_)?tests?\.rs$"),
    "java": re.compile(r"(Test[A-Z].*|.*(Test|Tests|TestCase|IT))\.java$"),
}
# Files that carry no behaviour of their own to be tested.
NO_BEHAVIOUR = re.compile(
    r"(__init__|__main__|setup|noxfile|_version)\.py$"
    r"|.*\.d\.[cm]?ts$|.*\.config\.[cm]?[jt]s$|.*rc\.[cm]?js$"
    r"|doc\.go$|build\.rs$|mod\.rs$|(package|module)-info\.java$"
)
RUST_INLINE_TEST = re.compile(r"#\[\s*(cfg\(\s*(all\()?test\b|(\w+::)*test\b)")


def is_test(path: str) -> bool:
    """Whether the file is a test by its language's customs."""
    file = PurePosixPath(path)
    language = LANGUAGES.get(file.suffix)
    if language is None:
        return False
    return bool(TEST_NAMES[language].match(file.name)) or bool(TEST_FOLDERS[language] & set(file.parts[:-1]))


def is_source(path: str) -> bool:
    """Whether the file holds code that wants a test."""
    file = PurePosixPath(path)
    return file.suffix in LANGUAGES and not is_test(path) and not NO_BEHAVIOUR.match(file.name)


def holds_inline_tests(path: str, content: str) -> bool:
    """Whether a source file carries tests of its own, as Rust's do."""
    return path.endswith(".rs") and RUST_INLINE_TEST.search(content) is not None


def untested(added: Iterable[str], changed: Iterable[str], inline: Collection[str] = ()) -> str:
    """What to say where source files were added and no test was touched; empty where all is well.

    `changed` are all paths that were added or modified, `inline` those that hold tests of their own.
    """
    new = tuple(sorted(p for p in added if is_source(p) and p not in inline))
    if not new or inline or any(is_test(p) for p in changed):
        return ""
    return f"New code without a test: {listing(new)}. Add or change a test that fails without this code."
