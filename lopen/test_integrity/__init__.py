"""Tests deleted, skipped or weakened in a change, found without a model and without running anything.

Each language is read into `Suite`s of `Case`s (`python`, `javascript`, `go`, `rust`, `java`); `compare` then works
on those alone. `configuration` reads what decides which tests run at all, `python_stubs` and `shadowing` what stands
in for the code under test or for its runner.

Severity: `error` for a test that is gone, no longer collected, skipped, or checks nothing any more; `warning` for
one that checks less than it did, for a skip that cannot hold on this platform, and for a test that went together
with the code it tested; `info` for an expectation that was rewritten as strictly as before. An error fails a
verdict whatever the oracle says, so it is given only where no reading of the change keeps the test.
"""

from lopen.test_integrity.detect import find_tampering, looks_like_test, tests_by_file
from lopen.test_integrity.suite import FileChange

__all__ = ["FileChange", "find_tampering", "looks_like_test", "tests_by_file"]
