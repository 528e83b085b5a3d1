"""What counts as passed, and the verdict's shapes outside."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lopen.oracle.judge import MAX_FINDINGS, MAX_MESSAGE, read_verdict, tool_spec
from lopen.oracle.verdict import Confidence, Finding, Severity, Verdict, accepted, settled, verdict_from_json
from tests.oracle.samples import FAILED, PASSED, answer

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
)


@pytest.mark.parametrize(
    ("passed", "confidence", "severities", "counts"),
    [
        (True, "high", [], True),
        (True, "medium", ["warning", "info"], True),
        (True, "low", [], False),
        (True, "high", ["warning", "error"], False),
        (False, "high", [], False),
    ],
)
def test_passed_means_said_so_without_errors_and_not_at_low_confidence(
    passed: bool, confidence: Confidence, severities: list[Severity], counts: bool
) -> None:
    given_findings = tuple(Finding(severity, "x") for severity in severities)
    verdict = Verdict(passed, confidence, "", given_findings, "task", "T", "h")

    assert accepted(verdict) is counts
    assert verdict.to_tool_result()["passed"] is counts


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
    assert not once.passed or not any(finding.severity == "error" for finding in own)


def test_errors_come_first() -> None:
    order = settled(VERDICT, [Finding("info", "a"), Finding("error", "b"), Finding("warning", "c")]).findings

    assert [finding.severity for finding in order] == ["error", "warning", "info"]


def test_a_tool_result_leaves_out_what_is_not_known() -> None:
    verdict = settled(VERDICT, [Finding("error", "x", path="a.py")])

    assert verdict.to_tool_result() == {
        "passed": False,
        "confidence": "high",
        "summary": "fine",
        "findings": [{"severity": "error", "message": "x", "path": "a.py"}],
    }


def test_a_submitted_verdict_is_read_with_its_findings() -> None:
    verdict = read_verdict(answer(FAILED), scope="component", subject="C-1", evidence_hash="h")

    assert verdict == Verdict(
        False,
        "high",
        "Cents are lost.",
        (Finding("error", "cents are lost", "money.py", 1, "AC-2"),),
        "component",
        "C-1",
        "h",
    )


def test_empty_places_are_none() -> None:
    empty = {"severity": "info", "message": "x", "path": "", "line": 0, "criterion": None}

    verdict = read_verdict(
        answer({**PASSED, "findings": [empty]}), scope="task", subject="T", evidence_hash="h"
    )

    assert verdict.findings == (Finding("info", "x"),)


def test_a_flood_of_findings_is_cut_but_never_its_errors() -> None:
    flood = [{"severity": "info", "message": "x" * 5_000}] * 200 + [{"severity": "error", "message": "bad"}]

    verdict = read_verdict(
        answer({**PASSED, "findings": flood}), scope="task", subject="T", evidence_hash="h"
    )

    assert len(verdict.findings) == MAX_FINDINGS
    assert verdict.findings[0].message == "bad"
    assert max(len(finding.message) for finding in verdict.findings) == MAX_MESSAGE


def test_the_tool_asks_for_what_the_contract_names() -> None:
    schema = tool_spec().input_schema

    assert set(schema["properties"]) == {"passed", "confidence", "summary", "findings"}
    assert set(schema["required"]) == {"passed", "confidence", "summary"}
    assert schema["properties"]["confidence"]["enum"] == ["high", "medium", "low"]
    json.dumps(schema)
