"""Changed files, and which of them hold tests or support tests, by their paths in whichever language."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lopen.git.trees import TreeChange

MAX_CHARS = 300_000  # a larger file is data or generated: its tests are not read

_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|e2e|testdata|golden)/|(?:^|[/_.-])(?:tests?|spec|conftest)[_.-]"
    r"|(?:^|/)(?:\w*(?:Tests?|TestCase|IT)|Test[A-Z]\w*)\.(?:java|kt|cs|php|groovy)$|\.(?:bats|t)$"
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


Read = Callable[[str], str | None]
"""Return the text of a file; None where there is none."""

Unchanged = Callable[[Callable[[str], bool]], Mapping[str, str]]
"""Return the texts of the unchanged files that are wanted, by path."""

MayGo = Callable[[str], str]
"""Return why tests of a file may go; "" where they may not."""


@dataclass(frozen=True, slots=True)
class ExaminedChange:
    """A change from the tree `base` to the tree `tree`, with the texts of both sides.

    `unchanged` gives texts of the files that did not change, `read` that of any file after the change. `module` and
    `may_go` word the way out for tests that are to go. `stated` are the words of the work and its criteria.
    """

    base: str
    tree: str
    files: Sequence[TreeChange]
    changes: Sequence[FileChange]
    unchanged: Unchanged
    read: Read
    module: str
    may_go: MayGo
    stated: str = ""


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def looks_like_test(path: str) -> bool:
    """Return True if a path is a test's or a test's support file by its name."""
    return bool(_TEST.search(path))


def is_data(path: str) -> bool:
    """Return True for a file that no runner executes."""
    return bool(_DATA.search(path))
