"""One verdict for one piece of evidence: remembered, decided without asking, or asked for in one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError

from lopen.llm.messages import Request, Response, SystemBlock, ToolSpec
from lopen.oracle.evidence import Evidence, VerifyResult, evidence_hash
from lopen.oracle.rubric import PROMPT_CHARS, evidence_message, system_prompt
from lopen.oracle.runner_output import tail
from lopen.oracle.verdict import Confidence, Finding, Scope, Severity, Verdict, settled

MAX_ASKED = 2
MAX_TOKENS = 4_096
UNREADABLE = "the oracle's verdict could not be read"
TOO_LARGE = "the evidence is too large for the oracle's model"
_FINDING_OUTPUT = 2_000

Ask = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict and how it came about: `cached` from an earlier judgement, `asked` requests made for it now."""

    verdict: Verdict
    cached: bool
    asked: int


def judge(
    evidence: Evidence,
    *,
    ask: Ask,
    model: str,
    remembered: Callable[[str], Verdict | None],
    remember: Callable[[Verdict], None],
    system: str | None = None,
    prompt_chars: int = PROMPT_CHARS,
    max_tokens: int = MAX_TOKENS,
) -> Judged:
    """The verdict on `evidence`.

    `ask` sends a request with all retries and charges; what it raises passes through. `remembered` and
    `remember` are keyed by evidence hash and hold only verdicts that the oracle gave: what lopen decided
    by itself costs nothing to decide again, and an answer that could not be read is no verdict.
    The verdict returned has lopen's findings merged in, and its `passed` says what counts.
    """
    digest = evidence_hash(evidence)
    unfit = unfit_results(evidence)
    if unfit:
        return Judged(_failed(evidence, digest, "a verify command stands in the way", unfit), False, 0)
    known = remembered(digest)
    if known is not None:
        own = replace(known, scope=evidence.scope, subject=evidence.subject)
        return Judged(settled(own, evidence.tampering), True, 0)
    request = _request(evidence, model, system or system_prompt(), prompt_chars, max_tokens)
    for asked in range(1, MAX_ASKED + 1):
        try:
            given = read_verdict(
                ask(request), scope=evidence.scope, subject=evidence.subject, evidence_hash=digest
            )
        except UnreadableVerdict as error:
            problem = str(error)
            request = _again(request, problem)
            continue
        verdict = settled(given, evidence.tampering)
        remember(verdict)
        return Judged(verdict, False, asked)
    unread = (Finding("error", f"{UNREADABLE}: {problem}; ask for the verification again"),)
    return Judged(_failed(evidence, digest, UNREADABLE, unread), False, MAX_ASKED)


def too_large(evidence: Evidence) -> Judged:
    """The verdict where the oracle's endpoint takes no prompt on this evidence, however much of it is cut."""
    why = Finding("error", f"{TOO_LARGE}: do the work in smaller tasks")
    return Judged(_failed(evidence, evidence_hash(evidence), TOO_LARGE, (why,)), False, 0)


def unfit_results(evidence: Evidence) -> tuple[Finding, ...]:
    """An error for each verify result that failed, or that was obtained on another tree than the one judged."""
    return tuple(
        finding for result in evidence.results if (finding := _unfit(result, evidence.tree)) is not None
    )


def _unfit(result: VerifyResult, tree: str) -> Finding | None:
    if not result.passed:
        code = "did not end by itself" if result.exit_code is None else f"exit {result.exit_code}"
        output = tail(result.output_tail, _FINDING_OUTPUT)
        return Finding("error", f"{result.tool} failed ({code}): {result.command}\n{output}".rstrip())
    if result.tree != tree:
        return Finding("error", f"{result.tool} ran before the last change to the work tree; run it again")
    return None


def _failed(evidence: Evidence, digest: str, summary: str, why: tuple[Finding, ...]) -> Verdict:
    """A failed verdict of lopen's own, certain of itself."""
    verdict = Verdict(False, "high", summary, why, evidence.scope, evidence.subject, digest)
    return settled(verdict, evidence.tampering)


def _request(evidence: Evidence, model: str, system: str, prompt_chars: int, max_tokens: int) -> Request:
    text = evidence_message(evidence, limit=prompt_chars)
    return Request(
        model=model,
        system=(SystemBlock(system, cached=True),),
        messages=({"role": "user", "content": [{"type": "text", "text": text}]},),
        tools=(tool_spec(),),
        max_tokens=max_tokens,
        tool_choice=TOOL,
        purpose="oracle",
    )


def _again(request: Request, problem: str) -> Request:
    """The same request, saying what was wrong with the last answer."""
    first, *_ = request.messages
    note = f"Your last answer could not be read ({problem}). Call {TOOL} exactly once, with every field."
    content = [first["content"][0], {"type": "text", "text": note}]
    return replace(request, messages=({"role": "user", "content": content},))


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
    """The input of `submit_verdict`."""

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
