"""What counts as passed, and the verdict's shapes outside."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.judge.evidence import evidence_hash
from lopen.judge.submission import MAX_FINDINGS, MAX_MESSAGE, read_verdict
from lopen.judge.verdict import (
    AnsweredQuestion,
    CriterionResult,
    Outcome,
    Verdict,
    accepted,
    could_not_tell,
    left_open,
    outcome,
    settled,
    verdict_from_json,
)
from lopen.verification.findings import Finding
from tests.judge.samples import EVIDENCE, FAILED, PASSED, answer, changed

VERDICT = Verdict(True, "high", "fine", (), "task", "T-1", "abc")

findings = st.builds(
    Finding,
    st.sampled_from(["error", "warning", "info"]),
    st.text(),
    st.none() | st.text(),
    st.none() | st.integers(1),
    st.none() | st.text(),
)
verdicts = st.builds(
    Verdict,
    st.booleans(),
    st.sampled_from(["high", "medium", "low"]),
    st.text(),
    st.lists(findings, max_size=4).map(tuple),
    st.sampled_from(["task", "component", "module"]),
    st.text(),
    st.text(),
    st.lists(
        st.builds(CriterionResult, st.text(), st.sampled_from(["yes", "no", "cannot_tell"]), st.text())
    ).map(tuple),
    by_person=st.booleans(),
)


YES, NO, OPEN = (CriterionResult("AC-1", holds) for holds in ("yes", "no", "cannot_tell"))
JUST, UNJUST, UNDECIDED = (
    AnsweredQuestion("Q1", "asserts less", answer) for answer in ("justified", "not_justified", "cannot_tell")
)
DUE = replace(VERDICT, due=("AC-1",))


@pytest.mark.parametrize(
    ("verdict", "amounts_to"),
    [
        (VERDICT, "passed"),
        (replace(VERDICT, confidence="medium", findings=(Finding("warning", "x"),)), "passed"),
        (replace(VERDICT, confidence="low"), "cannot tell"),
        (replace(VERDICT, findings=(Finding("error", "x"),)), "rejected"),
        (replace(VERDICT, passed=False), "cannot tell"),
        (replace(VERDICT, passed=False, findings=(Finding("error", "x"),)), "rejected"),
        (replace(VERDICT, criteria=(OPEN,)), "passed"),  # not due here: the next wider verdict asks again
        (replace(VERDICT, criteria=(NO,)), "rejected"),
        (DUE, "cannot tell"),
        (replace(DUE, criteria=(OPEN,)), "cannot tell"),
        (replace(DUE, criteria=(NO,)), "rejected"),
        (replace(DUE, criteria=(YES,)), "passed"),
        (replace(DUE, criteria=(YES,), confidence="low"), "cannot tell"),
        (replace(DUE, criteria=(CriterionResult("AC-2", "yes"),)), "cannot tell"),
        (replace(DUE, criteria=(OPEN,), by_person=True), "passed"),
        (replace(DUE, criteria=(NO,), by_person=True), "rejected"),
        (replace(VERDICT, questions=(JUST,)), "passed"),
        (replace(VERDICT, questions=(JUST, UNDECIDED)), "cannot tell"),
        (replace(VERDICT, questions=(UNDECIDED,), by_person=True), "passed"),
        (replace(VERDICT, questions=(UNJUST,)), "rejected"),
        (replace(VERDICT, questions=(UNJUST,), by_person=True), "rejected"),
    ],
)
def test_what_a_verdict_amounts_to(verdict: Verdict, amounts_to: Outcome) -> None:
    assert outcome(verdict) == amounts_to
    assert verdict.to_tool_result()["passed"] is accepted(verdict) is (amounts_to == "passed")
    assert could_not_tell(verdict) is (amounts_to == "cannot tell")
    assert outcome(settled(verdict)) == amounts_to


@pytest.mark.parametrize(
    ("verdict", "own", "summary"),
    [
        (VERDICT, (), "fine"),
        (VERDICT, (Finding("error", "verify_tests failed\noutput"),), "verify_tests failed"),
        (replace(VERDICT, passed=False), (Finding("error", "verify_tests failed"),), "verify_tests failed"),
        (replace(VERDICT, criteria=(NO,)), (), "AC-1 does not hold"),
        (replace(VERDICT, passed=False, criteria=(NO,)), (), "fine"),
        (replace(VERDICT, questions=(UNJUST,)), (), "not justified: asserts less"),
        (DUE, (), "it could not be told whether AC-1 holds: it was not answered; the judge's summary: fine"),
        (replace(DUE, by_person=True), (), "fine"),
    ],
)
def test_the_summary_never_says_that_all_is_well_where_it_is_not(
    verdict: Verdict, own: tuple[Finding, ...], summary: str
) -> None:
    assert settled(verdict, own).summary == summary


def test_a_verdict_that_could_not_tell_says_each_open_point_and_the_judges_summary_once() -> None:
    lines = settled(replace(DUE, due=("AC-1", "AC-2"))).lines
    assert lines == [
        "verdict on task T-1: cannot tell: it could not be told whether AC-1 holds: it was not answered; "
        "the judge's summary: fine",
        "  the judge, warning: it could not be told whether AC-2 holds: it was not answered [AC-2]",
    ]


def test_a_criterion_stays_open_until_a_later_verdict_answers_it() -> None:
    open_one = CriterionResult("AC-1", "cannot_tell", "nothing calls it yet")
    first = replace(VERDICT, criteria=(open_one, CriterionResult("AC-2", "cannot_tell", "no test")))
    second = replace(VERDICT, subject="T-2", criteria=(CriterionResult("AC-2", "yes"),))
    refused = replace(first, subject="T-3", passed=False)

    assert left_open([first, second]) == (("AC-1", "T-1", "nothing calls it yet"),)
    assert left_open([refused]) == ()


@given(verdicts)
def test_a_verdict_survives_storage(verdict: Verdict) -> None:
    assert verdict_from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


@given(verdicts, st.lists(findings, max_size=3))
def test_settling_twice_is_settling_once_and_never_passes_what_did_not(
    verdict: Verdict, own: list[Finding]
) -> None:
    once = settled(verdict, own)

    assert settled(once, own) == once
    assert once.passed == accepted(once)
    assert accepted(verdict) or not once.passed
    assert could_not_tell(once) is (not once.passed and not any(f.severity == "error" for f in once.findings))
    assert not once.passed or not any(finding.severity == "error" for finding in own)


def test_an_error_that_names_the_criterion_already_is_not_doubled() -> None:
    found = Finding("error", "cents are lost", criterion="AC-1")
    failing = (CriterionResult("AC-1", "no", "money.py:3"),)

    assert settled(replace(VERDICT, findings=(found,), criteria=failing)).findings == (found,)


def test_a_submitted_verdict_is_read_with_its_findings_and_criteria() -> None:
    evidence = changed(EVIDENCE, scope="component", subject="C-1")
    lines = [{"id": "AC-2", "holds": "no", "evidence": "money.py:1"}]

    verdict = read_verdict(answer({**FAILED, "criteria": lines}), evidence)

    assert verdict == Verdict(
        False,
        "high",
        "Cents are lost.",
        (Finding("error", "cents are lost", "money.py", 1, "AC-2"),),
        "component",
        "C-1",
        evidence_hash(evidence),
        (CriterionResult("AC-2", "no", "money.py:1"),),
        "tree-0",
        "tree-1",
    )


def test_a_flood_of_findings_is_cut_but_never_its_errors() -> None:
    flood = [{"severity": "info", "message": "x" * 5_000}] * 200 + [{"severity": "error", "message": "bad"}]

    verdict = read_verdict(answer({**PASSED, "findings": flood}), EVIDENCE)

    assert len(verdict.findings) == MAX_FINDINGS
    assert verdict.findings[0].message == "bad"
    assert max(len(finding.message) for finding in verdict.findings) == MAX_MESSAGE
