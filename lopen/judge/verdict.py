"""The verdict as a value, the rule for passing, and their shape in tool results and storage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from lopen.core.escape import inert
from lopen.verification.findings import Finding, Severity
from lopen.workflow.pauses import BOUNDARIES

Confidence = Literal["high", "medium", "low"]
Scope = Literal["task", "component", "module"]
Holds = Literal["yes", "no", "cannot_tell"]
Justified = Literal["justified", "not_justified", "cannot_tell"]
Outcome = Literal["passed", "rejected", "cannot tell"]  # the words that every shell shows

BREADTH: Mapping[Scope, int] = {"task": 1, "component": 2, "module": 3}
_ORDER: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}
LOW_CONFIDENCE = "the judge's confidence is low, and low confidence does not count as passed"


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """The judge's answer on one acceptance criterion, with the evidence it names."""

    id: str
    holds: Holds
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """One of lopen's questions about the change, with the judge's answer and its reason."""

    id: str
    text: str
    answer: Justified
    because: str = ""
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one piece of work, bound to its evidence by `evidence_hash` and to its scope.

    `base_tree` and `tree` are the trees between which the work was done. `due` are the ids of the criteria that need a
    `yes` here. `by_person`: the judge could not tell, and a person accepted the work.
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
    due: tuple[str, ...] = ()
    questions: tuple[AnsweredQuestion, ...] = ()

    @property
    def objections(self) -> tuple[Finding, ...]:
        """The findings of the judge that ask for a change."""
        return tuple(f for f in self.findings if f.severity != "info" and f.by != "lopen")

    @property
    def reasons(self) -> tuple[str, ...]:
        """The findings in words: its errors, or all that it finds fault with where it names none."""
        found = {kind: [f for f in self.findings if f.severity == kind] for kind in ("error", "warning")}
        return tuple(inert(finding.shown) for finding in found["error"] or found["warning"])

    @property
    def lines(self) -> list[str]:
        """The verdict in lines for a person, with the reasons of one that did not pass."""
        told = f"verdict on {self.scope} {self.subject}: "
        if self.passed:
            return [f"{told}passed"]
        return [
            f"{told}{outcome(self)}: {self.summary}",
            *(f"  {reason}" for reason in self.beside_summary.reasons),
        ]

    @property
    def beside_summary(self) -> Verdict:
        """The verdict without the undecided points that its summary says already."""
        if not could_not_tell(self):
            return self
        return replace(self, findings=tuple(f for f in self.findings if f.message not in self.summary))

    def to_tool_result(self) -> dict[str, Any]:
        """Return the fields of a `verify_*_completion` result beside `ok`; `passed` is the rule's, not the judge's."""
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

    Raises `ValueError` where `stored` is not a verdict.
    """
    return _adapter().validate_python(stored)


@cache
def _adapter() -> TypeAdapter[Verdict]:
    return TypeAdapter(Verdict)


def serves(given: Scope, wanted: Scope) -> bool:
    """Return whether a verdict on the scope `given` answers for `wanted`: for the same or a narrower one, never a wider."""
    return BREADTH[given] >= BREADTH[wanted]


def outcome(verdict: Verdict) -> Outcome:
    """Return the outcome of the verdict: the one rule of passing.

    It is rejected where a finding is an error, a criterion does not hold or a question is answered "not justified". It
    passed if a person accepted an undecided verdict. Else the judge must say so with more than low confidence, with a
    `yes` for each due criterion and "justified" for each question. Everything else could not be told.
    """
    if _refuted(verdict):
        return "rejected"
    told = verdict.passed and verdict.confidence != "low" and not _open_points(verdict)
    return "passed" if verdict.by_person or told else "cannot tell"


def accepted(verdict: Verdict) -> bool:
    """Return whether the verdict passes."""
    return outcome(verdict) == "passed"


def could_not_tell(verdict: Verdict) -> bool:
    """Return whether the verdict is not passed and names nothing that is wrong."""
    return outcome(verdict) == "cannot tell"


def _refuted(verdict: Verdict) -> bool:
    return (
        any(finding.severity == "error" for finding in verdict.findings)
        or any(result.holds == "no" for result in verdict.criteria)
        or any(question.answer == "not_justified" for question in verdict.questions)
    )


def _open_points(verdict: Verdict) -> tuple[Finding, ...]:
    """Return a warning for each due criterion without a `yes` and for each question without an answer."""
    given = {result.id: result for result in verdict.criteria}
    found = []
    for name in verdict.due:
        result = given.get(name)
        if result is None or result.holds == "cannot_tell":
            lacks = (result.evidence or "the evidence does not show it") if result else "it was not answered"
            found.append(
                Finding("warning", f"it could not be told whether {name} holds: {lacks}", criterion=name)
            )
    for question in verdict.questions:
        if question.answer == "cannot_tell":
            lacks = question.because or "it was not answered"
            found.append(
                Finding("warning", f"undecided: {question.text}: {lacks}", question.path, question.line)
            )
    return tuple(found)


def left_open(verdicts: Iterable[Verdict]) -> tuple[tuple[str, str, str], ...]:
    """Return (criterion, subject, missing evidence) of the criteria that accepted verdicts, oldest first, left open.

    A later answer of any verdict closes them.
    """
    found: dict[str, tuple[str, str, str]] = {}
    for verdict in verdicts:
        for result in verdict.criteria:
            found.pop(result.id, None)
            if result.holds == "cannot_tell" and accepted(verdict):
                found[result.id] = (result.id, verdict.subject, result.evidence)
    return tuple(found.values())


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


def rejection(stored: Sequence[Mapping[str, Any]], reason: object) -> list[str]:
    """Return the newest verdict in lines for a person, where the work that a pause's `reason` names did not pass it."""
    last = stored[-1] if stored else None
    subject, digest = getattr(reason, "subject", None), getattr(reason, "evidence_hash", None)
    if last is None or not (
        digest == last["evidence_hash"]
        or (subject and subject in (last.get("task"), last["subject"], BOUNDARIES))
    ):
        return []
    verdict = verdict_from_json(last)
    if accepted(verdict):
        return []
    if digest == verdict.evidence_hash and could_not_tell(
        verdict
    ):  # the pause's own message says the summary
        return [verdict.lines[0].removesuffix(f": {verdict.summary}"), *verdict.lines[1:]]
    return verdict.lines


def settled(verdict: Verdict, own: Sequence[Finding] = ()) -> Verdict:
    """Return the verdict with lopen's own findings merged in, and `passed` by the rule.

    A criterion that does not hold becomes an error that names it, where no error does; so does a change that is not
    justified. An error fails the verdict against the judge's word that the work passed, and is then its summary; one of
    lopen's own is it in any case. What could not be told stands before the judge's own summary. Settling twice changes nothing more.
    """
    own = [replace(finding, by="lopen") for finding in own]
    findings = [*own, *verdict.findings]
    named = {finding.criterion for finding in findings if finding.severity == "error"}
    wrong = [finding for finding in own if finding.severity == "error"]
    for result in verdict.criteria:
        if result.holds == "no":
            message = f"{result.id} does not hold: {result.evidence}".rstrip(": ")
            wrong.append(Finding("error", message, criterion=result.id))
    for question in verdict.questions:
        if question.answer == "not_justified":
            message = f"not justified: {question.text}: {question.because}".rstrip(": ")
            wrong.append(Finding("error", message, question.path, question.line))
    findings += [finding for finding in wrong if finding.criterion is None or finding.criterion not in named]
    undecided = () if verdict.by_person else _open_points(verdict)
    findings += undecided
    if verdict.passed and verdict.confidence == "low" and not verdict.by_person:
        findings.append(Finding("warning", LOW_CONFIDENCE))
    unique = tuple(dict.fromkeys(findings))
    merged = replace(verdict, findings=tuple(sorted(unique, key=lambda f: _ORDER[f.severity])))
    told = [finding for finding in wrong if finding in own or verdict.passed]
    if verdict.passed and not told:
        told = [f for f in verdict.findings if f.severity == "error"]
    summary = next((finding.message.partition("\n")[0] for finding in told), verdict.summary)
    if verdict.passed and undecided and not told:
        summary = f"{undecided[0].message}; the judge's summary: {summary}"
    return replace(merged, passed=accepted(merged), summary=summary)
