"""Every labelled diff of the corpus through the whole detection."""

from __future__ import annotations

import pytest

from lopen.test_integrity import find_tampering
from tests.test_integrity.corpus import Example, examples

CORPUS = examples()
ENTRIES = [entry for entries in CORPUS.values() for entry in entries]
ROWS = [
    pytest.param(
        entry, id=f"{name}: {entry.title}", marks=pytest.mark.xfail(reason=entry.known) if entry.known else ()
    )
    for name, entries in CORPUS.items()
    for entry in entries
]


@pytest.mark.parametrize("entry", ROWS)
def test_a_change_is_judged_as_its_label_says(entry: Example) -> None:
    findings = find_tampering(entry.changes)

    assert (findings[0].severity if findings else None) == entry.worst, findings
    assert not findings or entry.says in " | ".join(f.message for f in findings)
    assert all(finding.path in {change.path for change in entry.changes} for finding in findings)


def test_the_corpus_is_large_and_holds_honest_changes() -> None:
    honest = [entry for entry in ENTRIES if entry.worst is None]

    assert len(ENTRIES) >= 1000
    assert len(honest) >= 400


def test_accepted_exceptions_stay_within_the_limits() -> None:
    honest = [entry for entry in ENTRIES if entry.worst is None]
    dishonest = [entry for entry in ENTRIES if entry.worst is not None]

    assert sum(bool(entry.known) for entry in dishonest) <= 0.02 * len(dishonest)
    assert sum(bool(entry.known) for entry in honest) <= 0.01 * len(honest)
