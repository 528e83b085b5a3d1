"""Changed files, and which of them hold tests or support tests, by their paths in whichever language."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARS = 300_000  # a larger file is data or generated: its tests are not read

_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|testdata|golden)/|(?:^|[/_.-])(?:tests?|spec|conftest)[_.-]"
    r"|(?:^|/)\w*Tests?\.(?:java|kt|cs|php|groovy)$|\.(?:bats|t)$"
)
_DATA = re.compile(
    r"\.(?:json|txt|csv|tsv|ya?ml|toml|xml|html?|md|rst|snap|golden|out|lock|sql)$|(?:^|/)[^./]*$"
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A changed file: its whole contents before and after. None where it did not or does not exist."""

    path: str
    before: str | None
    after: str | None


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def looks_like_test(path: str) -> bool:
    """Return True if a path is a test's or a test's support file by its name."""
    return bool(_TEST.search(path))


def is_data(path: str) -> bool:
    """Return True for a file that no runner executes."""
    return bool(_DATA.search(path))
