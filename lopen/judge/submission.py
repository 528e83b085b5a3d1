"""The tool `submit_verdict`: its schema, and the verdict in a response that calls it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
)

from lopen.judge.evidence import Evidence, evidence_hash
from lopen.judge.verdict import AnsweredQuestion, Confidence, CriterionResult, Holds, Justified, Verdict
from lopen.models.messages import Response, ToolSpec
from lopen.models.request_body import plain_schema
from lopen.verification.findings import Finding, Severity

LOWER_CASE = BeforeValidator(lambda word: word.strip().lower() if isinstance(word, str) else word)
TOOL = "submit_verdict"
MAX_FINDINGS = 50
MAX_CRITERIA = 200
MAX_SUMMARY = 2_000
MAX_MESSAGE = 1_000


class UnreadableVerdict(Exception):
    """The answer holds no verdict that can be read; the text says why, in lopen's words."""


class SubmittedFinding(BaseModel):
    """One finding as the judge submits it; its prompt describes the fields."""

    model_config = ConfigDict(extra="ignore")

    severity: Annotated[Severity, LOWER_CASE]
    message: StrictStr
    path: StrictStr | None = None
    line: Annotated[StrictInt, Field(ge=0)] | None = None
    criterion: StrictStr | None = Field(default=None, description="its id")


class SubmittedCriterion(BaseModel):
    """The judge's answer on one criterion."""

    model_config = ConfigDict(extra="ignore")

    id: StrictStr
    holds: Annotated[Holds, LOWER_CASE]
    evidence: StrictStr = ""


class SubmittedAnswer(BaseModel):
    """The judge's answer to one of lopen's questions."""

    model_config = ConfigDict(extra="ignore")

    id: StrictStr
    answer: Annotated[Justified, LOWER_CASE] = Field(
        description="not_justified: the change must be taken back, which fails the verdict"
    )
    because: StrictStr = ""


class SubmittedVerdict(BaseModel):
    """The input of `submit_verdict`."""

    model_config = ConfigDict(extra="ignore")

    passed: StrictBool
    confidence: Annotated[Confidence, LOWER_CASE]
    summary: StrictStr = Field(description="The judgement in at most three sentences")
    findings: list[SubmittedFinding] = Field(default_factory=list)
    criteria: list[SubmittedCriterion] = Field(
        default_factory=list, description="One entry for each criterion that this work was to meet"
    )
    questions: list[SubmittedAnswer] = Field(
        default_factory=list, description="One entry for each question that lopen asks about the change"
    )


def tool_spec() -> ToolSpec:
    """Return the tool as offered to the judge."""
    schema = plain_schema(SubmittedVerdict.model_json_schema())
    return ToolSpec(TOOL, "Submit the verdict. Call it exactly once.", schema)


def read_verdict(response: Response, evidence: Evidence) -> Verdict:
    """Return the verdict on `evidence` in a response.

    Raises:
        UnreadableVerdict: there is none, more than one, or a wrong one.
    """
    if response.stop_reason == "max_tokens":
        raise UnreadableVerdict("the answer was cut at its token limit")
    calls = [use for use in response.tool_uses if use.name == TOOL]
    if len(calls) != 1:
        raise UnreadableVerdict(f"expected one call of {TOOL}, got {len(calls)}")
    if calls[0].input is None:
        raise UnreadableVerdict(f"the input of {TOOL} is not JSON")
    submitted = _validated(dict(calls[0].input))
    return Verdict(
        passed=submitted.passed,
        confidence=submitted.confidence,
        summary=submitted.summary[:MAX_SUMMARY],
        findings=_findings(submitted.findings),
        scope=evidence.work.scope,
        subject=evidence.work.subject,
        evidence_hash=evidence_hash(evidence),
        criteria=_criteria(submitted.criteria),
        base_tree=evidence.change.base_tree,
        tree=evidence.change.tree,
        due=evidence.work.due,
        questions=_answers(submitted.questions, evidence),
    )


def unanswered(verdict: Verdict) -> tuple[str, ...]:
    """Return the ids of the criteria that are due and of the questions on which the verdict says nothing."""
    named = {result.id for result in verdict.criteria}
    silent = [q.id for q in verdict.questions if q.answer == "cannot_tell" and not q.because]
    return (*(name for name in verdict.due if name not in named), *silent)


def _validated(value: dict[str, Any]) -> SubmittedVerdict:
    try:
        return SubmittedVerdict.model_validate(value)
    except ValidationError as error:
        # Field names only: the values are the model's, and this text goes back into a prompt.
        fields = sorted({".".join(str(part) for part in e["loc"]) for e in error.errors()})
        raise UnreadableVerdict(f"wrong or missing: {', '.join(fields)}") from error


def _findings(submitted: list[SubmittedFinding]) -> tuple[Finding, ...]:
    """At most `MAX_FINDINGS`; the errors are the last to be left out, since they decide."""
    ordered = sorted(submitted, key=lambda finding: finding.severity != "error")
    return tuple(
        Finding(f.severity, f.message[:MAX_MESSAGE], f.path or None, f.line or None, f.criterion or None)
        for f in ordered[:MAX_FINDINGS]
    )


def _criteria(submitted: list[SubmittedCriterion]) -> tuple[CriterionResult, ...]:
    """At most `MAX_CRITERIA`; criteria that do not hold are the last to be left out."""
    ordered = sorted(submitted, key=lambda criterion: criterion.holds != "no")
    return tuple(
        CriterionResult(c.id[:100], c.holds, c.evidence[:MAX_MESSAGE]) for c in ordered[:MAX_CRITERIA]
    )


def _answers(submitted: list[SubmittedAnswer], evidence: Evidence) -> tuple[AnsweredQuestion, ...]:
    """Return every question with its answer; an unanswered one could not be told."""
    given = {answer.id: answer for answer in submitted}
    answered = []
    for question in evidence.questions:
        answer = given.get(question.id, SubmittedAnswer(id=question.id, answer="cannot_tell"))
        answered.append(
            AnsweredQuestion(
                question.id,
                question.text[:MAX_MESSAGE],
                answer.answer,
                answer.because[:MAX_MESSAGE],
                question.path or None,
                question.line,
            )
        )
    return tuple(answered)
