"""What a mutation check tells the builder and the judge (docs/reference/mutation.md)."""

from __future__ import annotations

import pytest

from lopen.judge.mutation import MutantOutcome, MutationCheck


@pytest.mark.parametrize(
    ("ran", "noticed", "blocks", "severity"),
    [
        (4, 0, True, "warning"),  # too few to fail the work
        (4, 0, False, None),  # the tests may come with the next task
        (1, 1, True, None),
        (5, 0, True, "error"),
        (5, 0, False, "warning"),
        (5, 1, True, None),
    ],
)
def test_severity_of_mutants_that_no_test_notices(
    ran: int, noticed: int, blocks: bool, severity: str | None
) -> None:
    outcomes = tuple(MutantOutcome("calc.py", n + 1, f"`{n}`", "`0`", n < noticed) for n in range(ran))

    finding = MutationCheck(ran, outcomes).finding(blocks=blocks)

    assert (finding and finding.severity) == severity
