"""Data that tests expect or run over: tables and golden files that lose rows and gain none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from lopen.test_integrity.suite import FileChange
from lopen.verification.findings import Finding

_DATA = re.compile(
    r"(?:^|/)(?:tests?|spec|__tests__|testdata|fixtures|src/test)/(?:[^/]+/)*[^/]*"
    r"(?:cases?|expect\w*|golden|examples?|scenarios?|vectors?|approved|snapshots?)[^/]*\.(?:jsonl?|ndjson|csv|tsv|txt|ya?ml|toml)$"
)


def data_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a warning for each file of expected values or cases of which only some are left."""
    yield from _seeds(changes)
    for change in changes:
        if change.before is None or change.after is None or not _DATA.search(change.path):
            continue
        was, now = _rows(change.before), _rows(change.after)
        lost = len(was) - len(now)
        if lost > 0 and not set(now) - set(was):
            message = f"data of tests has {len(now)} rows where it had {len(was)}"
            yield Finding("warning", message, change.path)


_SEED = re.compile(r"(?:^|/)(?P<target>testdata/fuzz/Fuzz\w+|proptest-regressions|fuzz/corpus/[^/]+)/[^/]+$")


def _seeds(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a warning for inputs that once failed a fuzz target or a property and are no longer tried."""
    gone = [change for change in changes if change.after is None and _SEED.search(change.path)]
    new = sum(change.before is None and bool(_SEED.search(change.path)) for change in changes)
    for change in gone[new:]:
        yield Finding("warning", "an input that fuzzing found is no longer tried", change.path)


def _rows(text: str) -> list[str]:
    """Return the elements of a list of JSON, else the lines that say something, each in one form."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list):
        return [json.dumps(each, sort_keys=True) for each in found]
    if found is not None:
        return []
    return [" ".join(line.split()) for line in text.splitlines() if re.search(r"\w", line)]
