"""One verdict for one piece of evidence: remembered, decided without asking, or asked of the judge's models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lopen.judge.evidence import Evidence, evidence_hash
from lopen.judge.rubric import EVIDENCE_TOKENS, EvidenceMessage, evidence_message
from lopen.judge.submission import TOOL, UnreadableVerdict, read_verdict, tool_spec, unanswered
from lopen.judge.verdict import Verdict, could_not_tell, serves, settled
from lopen.models.messages import ContextTooLong, Json, Request, Response, SystemBlock, ToolSpec, ToolUse
from lopen.models.prompts.parts import CHARS_PER_TOKEN
from lopen.models.prompts.sizes import units
from lopen.models.request_body import sendable, text_block
from lopen.store.audit import VerifyResult
from lopen.verification.findings import Finding
from lopen.verification.runners import tail

MAX_TURNS = 12  # of one judgement that reads
MAX_TOKENS = 8_192
MOST_NAMED = 50  # unanswered points that are named when the judge is asked again
READING = 5  # times the size of the evidence that a judgement may read
UNREADABLE = "the judge's verdict could not be read"
TOO_LARGE = "the evidence is too large for the judge's model"
NO_ROOM = "There is no room to read more. Submit the verdict on what you have seen."
READ_ON = (
    "What is not shown above can be read with the tools, over exactly the tree that is judged. Read what the verdict "
    "depends on, then call submit_verdict."
)
_FINDING_OUTPUT = 2_000

Ask = Callable[[Request], Response]


class ReadingTools(Protocol):
    """Read-only tools over the tree under judgement."""

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The tools as offered to the judge."""
        ...

    def answer(self, use: ToolUse) -> Json:
        """Return the `tool_result` block of a call; a call that cannot be answered is an error result."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeModels:
    """The models that judge, the way to ask them, and the tools that they read with.

    `ask` sends a request with all retries and charges; its exceptions pass through, except `ContextTooLong`.
    """

    ask: Ask
    tools: ReadingTools
    model: str
    second_model: str
    system: str
    max_tokens: int = MAX_TOKENS


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict and how it came about: `cached` from an earlier judgement, `asked` requests made for it now."""

    verdict: Verdict
    cached: bool
    asked: int


def judge(
    evidence: Evidence,
    models: JudgeModels,
    *,
    remembered: Callable[[str], Verdict | None],
    remember: Callable[[Verdict], None],
) -> Judged:
    """Return the verdict on `evidence`, with lopen's findings merged in and `passed` by the rule.

    A verdict that could not tell is asked for once more, of the second model and with the tools. `remembered` and
    `remember` are keyed by evidence hash and hold only verdicts that a judge gave. A decision of lopen's own costs
    nothing to repeat, and an unreadable answer is not a verdict. Where lopen itself found an error, nobody is asked.
    """
    digest = evidence_hash(evidence)
    own = (*unfit_results(evidence), *evidence.findings)
    if any(finding.severity == "error" for finding in own):
        failed = Verdict(False, "high", "", (), evidence.work.scope, evidence.work.subject, digest)
        return Judged(settled(failed, own), False, 0)
    known = remembered(digest)
    if known is not None and serves(known.scope, evidence.work.scope):
        known = replace(
            known, scope=evidence.work.scope, subject=evidence.work.subject, due=evidence.work.due
        )
        return Judged(settled(known, own), True, 0)
    first = _Judgement(evidence, models, models.model)
    verdict = settled(first.verdict(), own)
    asked, readable = first.asked, first.readable
    if could_not_tell(verdict):
        second = _Judgement(evidence, models, models.second_model)
        verdict = settled(second.verdict(), own)
        asked, readable = asked + second.asked, second.readable
    if readable:
        remember(verdict)
    return Judged(verdict, False, asked)


def unfit_results(evidence: Evidence) -> tuple[Finding, ...]:
    """Return an error for each verify result that failed, or that was obtained on another tree than the one judged."""
    return tuple(
        finding
        for result in evidence.results
        if (finding := _unfit(result, evidence.change.tree)) is not None
    )


def _unfit(result: VerifyResult, tree: str) -> Finding | None:
    if not result.passed:
        code = "did not end by itself" if result.exit_code is None else f"exit {result.exit_code}"
        output = tail(result.output, _FINDING_OUTPUT)
        return Finding("error", f"{result.tool} failed ({code}): {result.command}\n{output}".rstrip())
    if result.tree != tree:
        return Finding("error", f"{result.tool} ran before the last change to the work tree; run it again")
    return None


@dataclass
class _Judgement:
    """One model's judgement: turns with the tools, mostly one."""

    evidence: Evidence
    models: JudgeModels
    model: str
    asked: int = 0
    readable: bool = False

    def verdict(self) -> Verdict:
        """Return the model's verdict; a verdict that could not tell where no answer can be read."""
        why = TOO_LARGE
        for tokens in self._sizes():
            message = evidence_message(self.evidence, tokens=tokens)
            try:
                given = self._converse(self._request(message), READING * tokens * CHARS_PER_TOKEN)
            except ContextTooLong:
                continue  # a small model gets less at once, and can read the rest
            except UnreadableVerdict as error:
                why = f"{UNREADABLE}: {error}"
                break
            self.readable = True
            return given
        unread = (Finding("warning", why),)
        return Verdict(
            False,
            "low",
            why,
            unread,
            self.evidence.work.scope,
            self.evidence.work.subject,
            evidence_hash(self.evidence),
        )

    def _sizes(self) -> Iterator[int]:
        yield EVIDENCE_TOKENS
        yield EVIDENCE_TOKENS // 4

    def _request(self, message: EvidenceMessage) -> Request:
        content = [
            text_block(message.order, cached=True),
            text_block(message.work),
            *([] if message.whole else [text_block(READ_ON)]),
        ]
        return Request(
            model=self.model,
            system=(SystemBlock(self.models.system, cached=True),),
            messages=({"role": "user", "content": content},),
            tools=(tool_spec(), *self.models.tools.specs),
            max_tokens=self.models.max_tokens,
            purpose="oracle",
        )

    def _converse(self, request: Request, room: int) -> Verdict:
        """Ask until a verdict comes. `room` bounds the text that the tools may add, in units."""
        asked_again, overflowed = False, False
        for turn in range(1, MAX_TURNS + 1):
            if turn == MAX_TURNS or room <= 0:
                request = replace(request, tool_choice=TOOL)
            try:
                response = self.models.ask(request)
            except ContextTooLong:
                if overflowed or len(request.messages) == 1:
                    raise
                request, room, overflowed = _without_last_results(request), 0, True
                continue
            self.asked += 1
            reading = request.tool_choice is None and self._reading(response)
            if reading:
                results = [self.models.tools.answer(use) for use in reading]
                room -= sum(units(str(result["content"])) for result in results)
                request = _with_results(request, response, results, last=room <= 0)
                continue
            last = asked_again or turn == MAX_TURNS
            try:
                verdict = read_verdict(response, self.evidence)
            except UnreadableVerdict as error:
                if last:
                    raise
                request = _asked_again(request, f"could not be read ({error})")
            else:
                silent = unanswered(verdict)
                if last or not silent or not verdict.passed or not could_not_tell(verdict):
                    return verdict
                request = _asked_again(request, f"does not answer {', '.join(silent[:MOST_NAMED])}")
            asked_again = True
        raise UnreadableVerdict(f"{MAX_TURNS} turns brought no verdict")

    def _reading(self, response: Response) -> Sequence[ToolUse]:
        """The calls of a turn that only reads."""
        if any(use.name == TOOL for use in response.tool_uses):
            return ()
        return response.tool_uses


def _with_results(request: Request, response: Response, results: Sequence[Json], *, last: bool) -> Request:
    content = [*results, *([text_block(NO_ROOM)] if last else [])]
    messages = (
        *request.messages,
        {"role": "assistant", "content": sendable(response.content)},
        {"role": "user", "content": content},
    )
    return replace(request, messages=messages)


def _without_last_results(request: Request) -> Request:
    """Return the same request without the last reading, which the model's context cannot hold."""
    *earlier, last = request.messages
    content = [
        {**block, "content": "not shown: too long for your context", "is_error": True}
        for block in last["content"]
        if block["type"] == "tool_result"
    ]
    return replace(request, messages=(*earlier, {"role": "user", "content": [*content, text_block(NO_ROOM)]}))


def _asked_again(request: Request, problem: str) -> Request:
    """Return the same request with the fault of the last answer, which is left out."""
    *earlier, last = request.messages
    note = f"Your last answer {problem}. Call {TOOL} exactly once, with every field."
    content = [*last["content"], text_block(note)]
    return replace(request, messages=(*earlier, {"role": "user", "content": content}), tool_choice=TOOL)
