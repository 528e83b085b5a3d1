"""Paths of tests and of their support files, in whichever language."""

from __future__ import annotations

import re

_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|testdata|golden)/|(?:^|[/_.-])(?:tests?|spec|conftest)[_.-]|Test\w*\.java$"
    r"|\.(?:bats|t)$"
)


def looks_like_test(path: str) -> bool:
    """Return True if a path is a test's or a test's support file by its name."""
    return bool(_TEST.search(path))
