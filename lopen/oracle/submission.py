"""`submit_verdict`: the one tool of the oracle, what it takes, and reading what came. The oracle's only pydantic.

Types are strict, since a guessed "passed" is worse than none; keys beyond the known ones are let go, since a
model that says more than it was asked has still said what it was asked.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from lopen.llm.messages import Response, ToolSpec
from lopen.oracle.verdict import Confidence, Finding, Scope, Severity, Verdict

TOOL = "submit_verdict"
MAX_FINDINGS = 50
MAX_SUMMARY = 2_000
MAX_MESSAGE = 1_000


class UnreadableVerdict(Exception):
    """The answer holds no verdict that can be read; the text says why, in lopen's words."""


class SubmittedFinding(BaseModel):
    """One finding as the oracle submits it."""

    model_config = ConfigDict(extra="ignore")

    severity: Severity = Field(description="error: must be mended before the work counts; warning; info")
    message: StrictStr = Field(description="What is wrong and what would mend it, in one or two sentences")
    path: StrictStr | None = Field(default=None, description="The file it is about, as the evidence names it")
    line: Annotated[StrictInt, Field(ge=0)] | None = Field(default=None, description="The line, where known")
    criterion: StrictStr | None = Field(default=None, description="The id of the criterion it concerns")


class SubmittedVerdict(BaseModel):
    """The input of `submit_verdict` (contract §4, Oracle)."""

    model_config = ConfigDict(extra="ignore")

    passed: StrictBool = Field(description="Whether the work does what the criteria and sections ask")
    confidence: Confidence = Field(description="How sure the evidence lets you be; low counts as not passed")
    summary: StrictStr = Field(description="The judgement in at most three sentences")
    findings: list[SubmittedFinding] = Field(default_factory=list)


def tool_spec() -> ToolSpec:
    """The tool as offered to the oracle."""
    return ToolSpec(TOOL, "Submit the verdict. Call it exactly once.", SubmittedVerdict.model_json_schema())


def read_verdict(response: Response, *, scope: Scope, subject: str, evidence_hash: str) -> Verdict:
    """The verdict in a response; `UnreadableVerdict` where there is none, more than one, or a wrong one."""
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
        scope=scope,
        subject=subject,
        evidence_hash=evidence_hash,
    )


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
