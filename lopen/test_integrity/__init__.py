"""Tests deleted, skipped or weakened in a change, found without a model and without running anything.

Each language is read into `Suite`s of `Case`s (`python`, `javascript`, `go`, `rust`, `java`); `compare` then works
on those alone. `configuration` and `run_files` read what decides which tests run at all, `python.stand_ins` and
`replaced_runners` what stands in for the code under test or for its runner.

Severity: `error` for a test that is gone, no longer collected, skipped, or checks nothing any more; `warning` for
one that checks less than it did, for a skip that cannot hold on this platform, and for a test that went together
with the code it tested; `info` for an expectation that was rewritten as strictly as before. An error fails a
verdict whatever the oracle says, so it is given only where no reading of the change keeps the test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lopen.test_integrity.paths import looks_like_test
from lopen.test_integrity.suite import FileChange

if TYPE_CHECKING:
    from lopen.test_integrity.detect import find_tampering, tests_by_file

__all__ = ["FileChange", "find_tampering", "looks_like_test", "tests_by_file"]


def __getattr__(name: str) -> object:
    """Return what reads tests, which costs 80 ms to import: a run sends its first request without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lopen.test_integrity import detect

    return getattr(detect, name)
