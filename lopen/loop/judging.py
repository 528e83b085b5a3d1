"""Judging finished work: evidence gathered by lopen itself, then the judge is asked at the widest scope.

Where a wider boundary would have the same evidence (the only task of a component, the only component of a
module), the wider question is asked, and its verdict serves the narrower ones (docs/reference/completion.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lopen.core.events import VerdictGiven
from lopen.core.redaction import KNOWN
from lopen.git.repository import Repository
from lopen.guardrails.completion import required
from lopen.guardrails.guard import one_line
from lopen.judge.diff_files import split_diff
from lopen.judge.evidence import Evidence, evidence_hash
from lopen.judge.judge import Judged, JudgeModels, judge
from lopen.judge.verdict import (
    BREADTH,
    Scope,
    Verdict,
    accepted,
    could_not_tell,
    serves,
    settled,
    verdict_from_json,
)
from lopen.loop.model_calls import CallPaused, ModelAccess, ModelCall
from lopen.models.messages import Json, ToolSpec, ToolUse
from lopen.store.sessions import SessionStore
from lopen.tools.calls import ToolResult, tool_result
from lopen.tools.judged_tree import JudgedTree
from lopen.tools.verification import Verified
from lopen.tools.workbench import Workbench
from lopen.verification.findings import Finding
from lopen.workflow.pauses import Confirmation, Pause, UndecidedVerdict
from lopen.workflow.session import Session

HIDDEN = (
    "the judge does not see {count} in {where}: a secret of the person's stands there, and it reads {mark}. "
    "Judge nothing by it; use a value that is not a secret"
)
BY_PERSON = "the judge could not tell; a person accepted the work"


@dataclass(frozen=True, slots=True)
class BoundaryVerdict:
    """A verdict, the verify results it rests on, and whether it lets the work through.

    `pause` asks a person, where the judge could not tell.
    """

    verdict: Verdict
    results: tuple[Verified, ...]
    passed: bool
    pause: Pause | None = None


def widest_scope(session: Session, scope: Scope, subject: str) -> tuple[Scope, str]:
    """Return the widest boundary that has the same evidence as this one."""
    if scope == "task":
        owner = session.tree.owner(subject)
        if owner is None or len(owner.tasks) != 1:
            return scope, subject
        scope, subject = "component", owner.id
    if scope == "component" and len(session.tree.components) == 1:
        return "module", session.module
    return scope, subject


def verify_results(bench: Workbench, scope: Scope) -> tuple[Verified, ...]:
    """Return fresh results of every verify command the boundary requires, run where there are none."""
    tools = [t for t in required_tools(bench, scope) if not t.endswith("_completion")]
    results: list[Verified] = []
    anew = scope == "module"  # its dependencies are those of exactly this tree, whatever its files say
    for _ in range(2):  # a command may itself change a lock file, which makes the earlier ones stale
        results = [r for tool in tools if (r := bench.project.verifier.ensured(tool, anew=anew)) is not None]
        if held := bench.project.verifier.setup_approval.pause:
            raise CallPaused(held)
        if all(bench.project.verifier.fresh(r.tool) is r for r in results):
            break
    return tuple(results)


def required_tools(bench: Workbench, scope: Scope) -> tuple[str, ...]:
    """Return the tools a boundary requires; a module of one component is that component's boundary too."""
    commands = bench.project.verifier.commands
    both = scope == "module" and len(bench.session.tree.components) == 1
    narrower = required("component", commands) if both else ()
    return tuple(dict.fromkeys((*required(scope, commands), *narrower)))


def answer(bench: Workbench, judge: Judge, scope: Scope, subject: str, note: str = "") -> ToolResult:
    """Return the verdict as a tool's result. Where the judge cannot tell of a task, the run pauses for a person."""
    judged = judge.verdict_on(bench, scope, subject, note)
    if judged.passed:
        bench.evidence.note_confidence(judged.verdict.confidence)
    result = ToolResult(True, judged.verdict.to_tool_result())
    return replace(result, pause=judged.pause) if scope == "task" else result


def hidden_values(evidence: Evidence, hide: Callable[[str], str]) -> Iterator[Finding]:
    """Yield a warning for each file, criterion and output of the evidence that holds a value which the judge does not see."""
    specification = f"specs/{evidence.module}/SPECIFICATION.md"
    texts: list[tuple[str, str | None, str | None, str]]  # where, path, criterion, text
    texts = [("this file", part.path, None, part.text) for part in split_diff(evidence.diff)]
    texts += [("this file", file.path, None, file.text) for file in evidence.source]
    texts += [("this section", specification, None, text) for _, text in evidence.sections]
    texts += [("this criterion", specification, id, text) for id, text in evidence.criteria]
    texts += [(f"the output of {r.tool}", None, None, r.output) for r in evidence.results]
    for where, path, criterion, text in texts:
        places = hide(text).count(KNOWN) - text.count(KNOWN)
        if places > 0:
            count = "a value" if places == 1 else f"{places} values"
            yield Finding(
                "warning", HIDDEN.format(count=count, where=where, mark=KNOWN), path, None, criterion
            )


class Judge(Protocol):
    """Whoever judges finished work."""

    def verdict_on(self, bench: Workbench, scope: Scope, subject: str, note: str = "") -> BoundaryVerdict:
        """Return the verdict on `subject` as the work tree is now. `note` is the builder's claim."""

        ...


def verdicts_of(store: SessionStore, session: str) -> tuple[Verdict, ...]:
    """Return the session's verdicts, oldest first."""
    return tuple(verdict_from_json(stored) for stored in store.verdicts(session))


def warnings_for_builder(store: SessionStore, session: Session) -> tuple[Finding, ...]:
    """Return the warnings of the last accepted verdict on a task of the selected component."""
    component = session.tree.component(session.plan.selected or "")
    ours = {task.id for task in component.tasks} if component else set()
    accepted_here = [v for v in verdicts_of(store, session.id) if v.subject in ours and accepted(v)]
    return tuple(f for f in accepted_here[-1].findings if f.severity == "warning") if accepted_here else ()


@dataclass(frozen=True)
class _TreeTools:
    """The tools over the judged tree, with results as the endpoint takes them."""

    tree: JudgedTree

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return self.tree.specs

    def answer(self, use: ToolUse) -> Json:
        return tool_result(use, self.tree.answer(use))


@dataclass
class AskedJudge:
    """Runs the verifications of a boundary, asks the judge's models, and remembers their verdicts."""

    calls: ModelAccess
    repository: Repository
    store: SessionStore
    model: str
    second_model: str
    hide: Callable[[str], str] = str
    """Removes the person's secrets from a text, as from what the models are sent."""

    def verdict_on(self, bench: Workbench, scope: Scope, subject: str, note: str = "") -> BoundaryVerdict:
        """Return the verdict on `subject` as the work tree is now. `note` is the builder's claim."""
        from lopen.loop.judged_work import (  # costs 100 ms: a run starts without it
            JudgedBoundary,
            evidence_for,
        )

        wide = widest_scope(bench.session, scope, subject)
        results = verify_results(bench, wide[0])
        if wide != (scope, subject) and not all(r.passed for r in results):
            # A wider boundary's own commands fail: its evidence is another, and it is judged at its time.
            wide, results = (scope, subject), verify_results(bench, scope)
        known = verdicts_of(self.store, bench.session.id)
        evidence = evidence_for(bench, self.repository, JudgedBoundary(*wide, results, note), known)
        unseen = tuple(hidden_values(evidence, self.hide))
        evidence = replace(evidence, findings=(*evidence.findings, *unseen))
        return self.verdict(bench, evidence, results)

    def verdict(self, bench: Workbench, evidence: Evidence, results: tuple[Verified, ...]) -> BoundaryVerdict:
        """Return the remembered verdict on the same evidence, a person's, or a new one."""
        judged = self._accepted_by_person(bench, evidence) or self._judged(bench, evidence)
        verdict = judged.verdict
        passed = accepted(verdict)
        bench.journal.tell(
            VerdictGiven(
                evidence.scope,
                evidence.subject,
                passed,
                verdict.confidence,
                verdict.summary[:1_000],
                len(verdict.findings),
                judged.cached,
                verdict.evidence_hash,
            )
        )
        pause = None
        if could_not_tell(verdict):
            why = f"the judge could not tell whether {evidence.scope} {evidence.subject} is complete"
            pause = Confirmation(
                bench.session.id,
                UndecidedVerdict(verdict.evidence_hash, BREADTH[evidence.scope]),
                f"{why}: {one_line(verdict.summary, 400)}; look at it, then accept it",
            )
        return BoundaryVerdict(verdict, results, passed, pause)

    def _judged(self, bench: Workbench, evidence: Evidence) -> Judged:
        outputs = {result.tool: result.output for result in evidence.results}
        models = JudgeModels(
            ask=lambda request: self.calls.ask(ModelCall(request, "oracle")),
            tools=_TreeTools(JudgedTree(self.repository, evidence.tree, outputs)),
            model=self.model,
            second_model=self.second_model,
        )
        return judge(
            evidence,
            models,
            remembered=lambda digest: self._remembered(bench.session.id, digest),
            remember=lambda verdict: self._remember(bench, verdict),
        )

    def _accepted_by_person(self, bench: Workbench, evidence: Evidence) -> Judged | None:
        """The verdict of a person on exactly this evidence, who confirmed that it may pass."""
        digest = evidence_hash(evidence)
        given = (r for r in bench.session.limits.confirmed if isinstance(r, UndecidedVerdict))
        if not any(r.evidence_hash == digest and r.breadth >= BREADTH[evidence.scope] for r in given):
            return None
        known = self._remembered(bench.session.id, digest)
        if known is not None and not serves(known.scope, evidence.scope):
            known = None
        findings = (Finding("warning", BY_PERSON),)
        own = Verdict(
            True,
            "low",
            known.summary if known else BY_PERSON,
            findings,
            evidence.scope,
            evidence.subject,
            digest,
            known.criteria if known else (),
            evidence.base_tree,
            evidence.tree,
            by_person=True,
            due=evidence.due,
            questions=known.questions if known else (),
        )
        verdict = settled(own, evidence.findings)
        if not all(result.passed for result in evidence.results) or not accepted(verdict):
            return None
        self._remember(bench, verdict)
        return Judged(verdict, True, 0)

    def _remembered(self, session: str, digest: str) -> Verdict | None:
        found = self.store.verdict(session, digest)
        return verdict_from_json(found) if found else None

    def _remember(self, bench: Workbench, verdict: Verdict) -> None:
        self.store.remember_verdict(
            bench.session.id,
            verdict.evidence_hash,
            verdict.scope,
            verdict.subject,
            bench.clock.now(),
            verdict.to_json(),
            limit=bench.settings.memory.evidence_max,
        )
