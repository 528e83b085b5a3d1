"""The one sentence that tells how the tests reacted to broken functions."""

from __future__ import annotations

import pytest

from lopen.verification.mutation_check import MutantOutcome, MutationCheck, mutation_from_json


def outcome(line: int, noticed: bool | None, now: str = "and") -> MutantOutcome:
    return MutantOutcome("ledger.py", line, line, "or", now, noticed)


NOTICED = tuple(outcome(n, True) for n in range(1, 4))
SENTENCES = {
    "tests noticed 3 of 3 mutants": MutationCheck(3, NOTICED, "noticed", ("ledger.py:1",)),
    "tests noticed 3 of 4 mutants; not noticed: ledger.py:15 `or` → `and`": MutationCheck(
        6, (*NOTICED, outcome(15, False), outcome(8, None), outcome(9, None)), "noticed"
    ),
    # Two edits of one line that read the same are named once.
    "tests noticed 0 of 2 mutants; not noticed: ledger.py:15 `or` → `and`": MutationCheck(
        2, (outcome(15, False), outcome(15, False)), "noticed"
    ),
    "tests noticed 3 of 3 mutants (5 more had no time)": MutationCheck(8, NOTICED, "noticed", run_s=0.4),
    "tests noticed 3 of 3 mutants (5 more had no time: a run of the tests takes 34 s, and quicker tests would show "
    "more)": MutationCheck(8, NOTICED, "noticed", run_s=34.2),
    "no mutant was tried (the compiler refused them)": MutationCheck(1, (outcome(1, None),), "noticed"),
    "tests fail when 2 changed functions are broken": MutationCheck(0, (), "noticed", ("a.c:1", "a.c:5")),
    "no run tells whether tests fail when 1 changed function is broken: verify-setup failed; no mutant was tried (2 had "
    "no time)": MutationCheck(2, (), "unknown", ("a.py:1",), "verify-setup failed"),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_verdict_tells_in_one_sentence_what_the_tests_noticed(sentence: str) -> None:
    check = SENTENCES[sentence]

    assert str(check) == sentence
    assert [(f.severity, f.message) for f in check.findings(blocks=True)] == [("info", sentence)]
    assert mutation_from_json({**check.to_json(), "base": "a"}) == check


def test_many_survivors_are_counted_and_long_edits_are_cut() -> None:
    survivors = tuple(outcome(n, False, "x" * 100) for n in range(8))

    told = str(MutationCheck(8, survivors, "noticed"))

    assert told.endswith("…` and 3 more")
    assert len(told) < 500  # what the judge is shown of a finding
