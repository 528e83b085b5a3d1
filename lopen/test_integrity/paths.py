"""Paths of tests and of their support files, in whichever language."""

from __future__ import annotations

import re

_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|testdata|golden)/|(?:^|[/_.-])(?:tests?|spec|conftest)[_.-]|Test\w*\.java$"
    r"|\.(?:bats|t)$"
)


_FOLDER = re.compile(r"(?:^|/)(?:tests?|__tests__|spec|testdata|golden|t)/")
_PARSED = re.compile(r"\.(?:py|[cm]?[jt]sx?|rs|go|java)$")
_BY_RUNNERS = re.compile(r"(?:^|/)conftest\.py$|_test\.go$|[._-](?:test|spec)\.[cm]?[jt]sx?$|Tests?\.java$")
_DATA = re.compile(
    r"\.(?:json|txt|csv|tsv|ya?ml|toml|xml|html?|md|rst|snap|golden|out|lock|sql)$|(?:^|/)[^./]*$"
)


def looks_like_test(path: str) -> bool:
    """Return True if a path is a test's or a test's support file by its name."""
    return bool(_TEST.search(path))


def is_support(path: str) -> bool:
    """Return True unless a file is named like a test, lies in no folder of tests, and has none by its language."""
    return bool(_FOLDER.search(path) or not _PARSED.search(path) or _BY_RUNNERS.search(path))


def is_data(path: str) -> bool:
    """Return True for a file that no runner executes."""
    return bool(_DATA.search(path))
