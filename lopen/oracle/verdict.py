"""The verdict and its findings as values, what counts as passed, and their shape in tool results and storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
Confidence = Literal["high", "medium", "low"]
Scope = Literal["task", "component", "module"]

_ORDER: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}
LOW_CONFIDENCE = "the oracle's confidence is low, and low confidence does not count as passed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or worth knowing. `line` counts from 1; `criterion` is an acceptance criterion's id."""

    severity: Severity
    message: str
    path: str | None = None
    line: int | None = None
    criterion: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The finding as a tool result shows it: what is not known is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word on one piece of work, bound to the evidence it rests on by `evidence_hash`."""

    passed: bool
    confidence: Confidence
    summary: str
    findings: tuple[Finding, ...]
    scope: Scope
    subject: str
    evidence_hash: str

    def to_tool_result(self) -> dict[str, Any]:
        """The fields of a `verify_*_completion` result beside `ok`; `passed` is what counts, not the oracle's word."""
        return {
            "passed": accepted(self),
            "confidence": self.confidence,
            "summary": self.summary,
            "findings": [finding.to_json() for finding in self.findings],
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values, for storage; `verdict_from_json` reads it back."""
        return asdict(self) | {"findings": [finding.to_json() for finding in self.findings]}


def verdict_from_json(stored: Mapping[str, Any]) -> Verdict:
    """The verdict that `Verdict.to_json` wrote. `KeyError` or `TypeError` where it is another thing."""
    return Verdict(
        passed=stored["passed"],
        confidence=stored["confidence"],
        summary=stored["summary"],
        findings=tuple(Finding(**finding) for finding in stored["findings"]),
        scope=stored["scope"],
        subject=stored["subject"],
        evidence_hash=stored["evidence_hash"],
    )


def accepted(verdict: Verdict) -> bool:
    """Passed means: the oracle said so, no finding is an error, confidence is not low."""
    return (
        verdict.passed
        and verdict.confidence != "low"
        and not any(finding.severity == "error" for finding in verdict.findings)
    )


def settled(verdict: Verdict, own: Iterable[Finding] = ()) -> Verdict:
    """The verdict with lopen's own findings merged in, and `passed` saying what counts.

    An error of lopen's own fails the verdict whatever the oracle said. Settling twice changes nothing more.
    """
    findings = [*own, *verdict.findings]
    if verdict.passed and verdict.confidence == "low":
        findings.append(Finding("warning", LOW_CONFIDENCE))
    unique = tuple(dict.fromkeys(findings))
    merged = replace(verdict, findings=tuple(sorted(unique, key=lambda f: _ORDER[f.severity])))
    return replace(merged, passed=accepted(merged))
