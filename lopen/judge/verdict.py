"""The verdict as a value, the rule for passing, and their shape in tool results and storage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from lopen.verification.findings import Finding, Severity

Confidence = Literal["high", "medium", "low"]
Scope = Literal["task", "component", "module"]
Holds = Literal["yes", "no", "cannot_tell"]

BREADTH: Mapping[Scope, int] = {"task": 1, "component": 2, "module": 3}
_ORDER: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}
LOW_CONFIDENCE = "the oracle's confidence is low, and low confidence does not count as passed"


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """The oracle's answer on one acceptance criterion, with the evidence it names."""

    id: str
    holds: Holds
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one piece of work, bound to its evidence by `evidence_hash` and to its scope.

    `base_tree` and `tree` are the trees between which the work was done. `by_person`: the oracle could not tell, and
    a person accepted the work.
    """

    passed: bool
    confidence: Confidence
    summary: str
    findings: tuple[Finding, ...]
    scope: Scope
    subject: str
    evidence_hash: str
    criteria: tuple[CriterionResult, ...] = ()
    base_tree: str = ""
    tree: str = ""
    by_person: bool = False

    def to_tool_result(self) -> dict[str, Any]:
        """Return the fields of a `verify_*_completion` result beside `ok`; `passed` is the rule's, not the oracle's."""
        return {
            "passed": accepted(self),
            "confidence": self.confidence,
            "summary": self.summary,
            "findings": [finding.to_json() for finding in self.findings],
        }

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values for storage; `verdict_from_json` reads it back."""
        return asdict(self) | {"findings": [finding.to_json() for finding in self.findings]}


def verdict_from_json(stored: Mapping[str, Any]) -> Verdict:
    """Return the verdict that `Verdict.to_json` wrote.

    Raises:
        KeyError, TypeError: `stored` is not a verdict.
    """
    return Verdict(
        passed=stored["passed"],
        confidence=stored["confidence"],
        summary=stored["summary"],
        findings=tuple(Finding(**finding) for finding in stored["findings"]),
        scope=stored["scope"],
        subject=stored["subject"],
        evidence_hash=stored["evidence_hash"],
        criteria=tuple(CriterionResult(**result) for result in stored.get("criteria", ())),
        base_tree=stored.get("base_tree", ""),
        tree=stored.get("tree", ""),
        by_person=stored.get("by_person", False),
    )


def serves(given: Scope, wanted: Scope) -> bool:
    """Return whether a verdict on the scope `given` answers for `wanted`: for the same or a narrower one, never a wider."""
    return BREADTH[given] >= BREADTH[wanted]


def accepted(verdict: Verdict) -> bool:
    """Return whether the verdict passes.

    It does where the oracle said so, no finding is an error, no criterion fails and the confidence is not low, or
    where a person accepted what the oracle could not tell.
    """
    if _refuted(verdict):
        return False
    return verdict.by_person or (verdict.passed and verdict.confidence != "low")


def could_not_tell(verdict: Verdict) -> bool:
    """Return whether the verdict is not passed and names nothing that is wrong."""
    return not accepted(verdict) and not _refuted(verdict)


def _refuted(verdict: Verdict) -> bool:
    return any(finding.severity == "error" for finding in verdict.findings) or any(
        result.holds == "no" for result in verdict.criteria
    )


def established(verdicts: Iterable[Verdict], standing: Collection[str]) -> frozenset[str]:
    """Return the ids of the criteria that accepted verdicts, oldest first, found to hold and none found broken since.

    `standing`: the subjects whose work is still there.
    """
    held: set[str] = set()
    for verdict in verdicts:
        held -= {result.id for result in verdict.criteria if result.holds == "no"}
        if accepted(verdict) and verdict.subject in standing:
            held |= {result.id for result in verdict.criteria if result.holds == "yes"}
    return frozenset(held)


def settled(verdict: Verdict, own: Iterable[Finding] = ()) -> Verdict:
    """Return the verdict with lopen's own findings merged in, and `passed` by the rule.

    A criterion that does not hold becomes an error that names it, where no error does. An error of lopen's own fails
    the verdict whatever the oracle said. Settling twice changes nothing more.
    """
    findings = [*own, *verdict.findings]
    named = {finding.criterion for finding in findings if finding.severity == "error"}
    for result in verdict.criteria:
        if result.holds == "no" and result.id not in named:
            message = f"{result.id} does not hold: {result.evidence}".rstrip(": ")
            findings.append(Finding("error", message, criterion=result.id))
    if verdict.passed and verdict.confidence == "low" and not verdict.by_person:
        findings.append(Finding("warning", LOW_CONFIDENCE))
    unique = tuple(dict.fromkeys(findings))
    merged = replace(verdict, findings=tuple(sorted(unique, key=lambda f: _ORDER[f.severity])))
    return replace(merged, passed=accepted(merged))
