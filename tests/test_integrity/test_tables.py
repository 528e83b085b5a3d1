"""Every row of the tables through the whole detection."""

from __future__ import annotations

import pytest

from lopen.test_integrity import find_tampering
from tests.test_integrity import (
    configuration_examples,
    go_examples,
    java_examples,
    javascript_examples,
    python_examples,
    python_silencing_examples,
    rust_examples,
    stand_in_examples,
)
from tests.test_integrity.examples import Example

TABLES = (
    python_examples,
    python_silencing_examples,
    javascript_examples,
    go_examples,
    rust_examples,
    stand_in_examples,
    java_examples,
    configuration_examples,
)
ROWS = [
    pytest.param(row, id=f"{table.__name__.rpartition('.')[2].removesuffix('_examples')}: {row.title}")
    for table in TABLES
    for row in (*table.TAMPERED, *table.INNOCENT)
]


@pytest.mark.parametrize("row", ROWS)
def test_a_change_is_judged_as_the_table_says(row: Example) -> None:
    findings = find_tampering(row.changes)

    assert (findings[0].severity if findings else None) == row.worst, findings
    assert not findings or row.says in " | ".join(f.message for f in findings)
    assert all(finding.path in {change.path for change in row.changes} for finding in findings)


def test_the_tables_hold_enough_of_both_kinds() -> None:
    assert all(len(table.TAMPERED) >= 10 and len(table.INNOCENT) >= 10 for table in TABLES)
