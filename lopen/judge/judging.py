"""Judging finished work: evidence gathered by lopen itself, then the judge is asked at the widest scope.

The last open task of a component completes the component, and the last open component the module: the wider question
is asked at once, while the builder can still mend what it finds. Its verdict serves the narrower ones
(docs/reference/completion.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lopen.core.events import VerdictGiven
from lopen.core.redaction import KNOWN
from lopen.guardrails.completion import required
from lopen.guardrails.guard import one_line
from lopen.judge.diff_files import split_diff
from lopen.judge.evidence import NO_BUILDER, BuilderWork, Evidence, evidence_hash
from lopen.judge.judge import Ask, Judged, JudgeModels, judge
from lopen.judge.judged_tree import JudgedTree
from lopen.judge.verdict import (
    BREADTH,
    Scope,
    Verdict,
    accepted,
    could_not_tell,
    outcome,
    serves,
    settled,
    verdict_from_json,
)
from lopen.models.prompts.templates import template
from lopen.settings.schema import Settings
from lopen.specification.spec import Specification
from lopen.store.audit import VerifyResult
from lopen.store.sessions import SessionStore
from lopen.verification.findings import Finding
from lopen.verification.verifier import Verifier
from lopen.workflow.pauses import LOOK_AT_IT, Confirmation, Pause, UndecidedVerdict
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, State, Task

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
    results: tuple[VerifyResult, ...]
    passed: bool
    pause: Pause | None = None


def widest_scope(session: Session, scope: Scope, subject: str) -> tuple[Scope, str]:
    """Return the widest boundary that this one completes."""
    tree = session.tree
    if scope == "task":
        owner = tree.owner(subject)
        if owner is None or not _last_open(owner.tasks, subject):
            return scope, subject
        scope, subject = "component", owner.id
    if scope == "component" and _last_open(tree.components, subject):
        return "module", session.module
    return scope, subject


def _last_open(nodes: Sequence[Task] | Sequence[Component], id: str) -> bool:
    return all(node.id == id or node.state is State.COMPLETE for node in nodes)


def verify_results(verifier: Verifier, scope: Scope, *, anew: bool) -> tuple[VerifyResult, ...]:
    """Return fresh results of every verify command the boundary requires, run where there are none.

    `anew`: their dependencies belong to exactly this tree.
    """
    tools = [t for t in required_tools(verifier, scope) if not t.endswith("_completion")]
    results: list[VerifyResult] = []
    for _ in range(2):  # a command may itself change a lock file, which makes the earlier ones stale
        results = [r for tool in tools if (r := verifier.ensured(tool, anew=anew)) is not None]
        if all(verifier.fresh(r.tool) is r for r in results):
            break
    verifier.room.mark_used()
    return tuple(results)


def required_tools(verifier: Verifier, scope: Scope) -> tuple[str, ...]:
    """Return the tools a boundary requires; a module's is the boundary of its components too."""
    narrower = required("component", verifier.commands) if scope == "module" else ()
    return tuple(dict.fromkeys((*required(scope, verifier.commands), *narrower)))


def hidden_values(evidence: Evidence, hide: Callable[[str], str]) -> Iterator[Finding]:
    """Yield a warning for each file, criterion and output of the evidence that holds a value which the judge does not see."""
    specification = f"specs/{evidence.work.module}/SPECIFICATION.md"
    texts: list[tuple[str, str | None, str | None, str]]  # where, path, criterion, text
    texts = [("this file", part.path, None, part.text) for part in split_diff(evidence.change.diff)]
    texts += [("this file", file.path, None, file.text) for file in evidence.change.source]
    texts += [("this section", specification, None, text) for _, text in evidence.work.sections]
    texts += [("this criterion", specification, id, text) for id, text in evidence.work.criteria]
    texts += [(f"the output of {r.tool}", None, None, r.output) for r in evidence.results]
    for where, path, criterion, text in texts:
        places = hide(text).count(KNOWN) - text.count(KNOWN)
        if places > 0:
            count = "a value" if places == 1 else f"{places} values"
            yield Finding(
                "warning", HIDDEN.format(count=count, where=where, mark=KNOWN), path, None, criterion
            )


class Judge(Protocol):
    """A judge of finished work."""

    def verdict_on(self, scope: Scope, subject: str, builder: BuilderWork = NO_BUILDER) -> BoundaryVerdict:
        """Return the verdict on `subject` as the work tree is now."""
        ...

    def accepted_by_person(self, task: str) -> BoundaryVerdict | None:
        """Return the verdict on a task whose work a person accepted; None if nobody did, or anything changed since."""
        ...


def verdicts_of(store: SessionStore, session: str) -> tuple[Verdict, ...]:
    """Return the session's verdicts, oldest first."""
    return tuple(verdict_from_json(stored) for stored in store.verdicts(session))


def open_remarks(store: SessionStore, session: Session) -> tuple[Finding, ...]:
    """Return the remarks of the last accepted verdict: whoever works next can mend them, or the person is told."""
    given = [v for v in verdicts_of(store, session.id) if accepted(v)]
    return tuple(f for f in given[-1].findings if f.severity == "warning") if given else ()


@dataclass
class AskedJudge:
    """Runs the verifications of a boundary, asks the judge's models, and remembers their verdicts.

    `ask` sends a request, charged to the judge. `hide` removes the person's secrets from a text, as from the models'
    requests.
    """

    ask: Ask
    verifier: Verifier
    load_spec: Callable[[str], Specification]
    store: SessionStore
    settings: Settings
    second_model: str
    hide: Callable[[str], str] = str

    @property
    def session(self) -> Session:
        """The session as it is now."""
        return self.verifier.log.journal.session

    def verdict_on(self, scope: Scope, subject: str, builder: BuilderWork = NO_BUILDER) -> BoundaryVerdict:
        """Return the verdict on `subject` as the work tree is now."""
        return self.verdict(self._evidence(scope, subject, builder))

    def accepted_by_person(self, task: str) -> BoundaryVerdict | None:
        """Return the verdict on a task whose work a person accepted; ask no model."""
        given = (r for r in self.session.limits.confirmed if isinstance(r, UndecidedVerdict))
        known = [found for r in given if (found := self.store.verdict(self.session.id, r.evidence_hash))]
        if not any((v.get("task"), v.get("tree")) == (task, self.verifier.tree()) for v in known):
            return None  # gathering evidence would run commands for nothing
        evidence = self._evidence("task", task, NO_BUILDER)
        return self.verdict(evidence) if self._accepted_by_person(evidence) else None

    def _evidence(self, scope: Scope, subject: str, builder: BuilderWork) -> Evidence:
        from lopen.judge.judged_work import JudgedWork, evidence_for  # costs 100 ms: a run starts without it

        session = self.session
        wide = widest_scope(session, scope, subject)
        results = verify_results(self.verifier, wide[0], anew=scope == "module")
        work = JudgedWork(
            session,
            self.load_spec(session.module),
            self.verifier,
            *wide,
            results,
            builder,
            verdicts_of(self.store, session.id),
        )
        evidence = evidence_for(work, control=self.settings.oracle.mutation != "off")
        unseen = tuple(hidden_values(evidence, self.hide))
        return replace(evidence, findings=(*evidence.findings, *unseen))

    def verdict(self, evidence: Evidence) -> BoundaryVerdict:
        """Return the remembered verdict on the same evidence, a person's, or a new one."""
        judged = self._accepted_by_person(evidence) or self._judged(evidence)
        verdict, work = judged.verdict, evidence.work
        passed = accepted(verdict)
        self.verifier.log.journal.tell(
            VerdictGiven(
                work.scope,
                work.subject,
                passed,
                verdict.confidence,
                verdict.summary[:1_000],
                sum(finding.severity != "info" for finding in verdict.findings),
                judged.cached,
                verdict.evidence_hash,
                () if passed else verdict.reasons,
                outcome(verdict),
            )
        )
        pause = None
        if could_not_tell(verdict):
            why = f"the judge could not tell whether {work.scope} {work.subject} is complete"
            pause = Confirmation(
                self.session.id,
                UndecidedVerdict(verdict.evidence_hash, BREADTH[work.scope]),
                f"{why}: {one_line(verdict.summary, 1_000)}{LOOK_AT_IT}",
            )
        return BoundaryVerdict(verdict, evidence.results, passed, pause)

    def _judged(self, evidence: Evidence) -> Judged:
        outputs = {result.tool: result.output for result in evidence.results}
        models = JudgeModels(
            ask=self.ask,
            tools=JudgedTree(self.verifier.repository, evidence.change.tree, outputs),
            model=self.settings.oracle.model,
            second_model=self.second_model,
            system=template("judge", self.settings.workflow.templates),
        )
        return judge(evidence, models, remembered=self._remembered, remember=self._remember)

    def _accepted_by_person(self, evidence: Evidence) -> Judged | None:
        """The verdict of a person on exactly this evidence, who confirmed that it may pass."""
        digest, scope = evidence_hash(evidence), evidence.work.scope
        given = (r for r in self.session.limits.confirmed if isinstance(r, UndecidedVerdict))
        if not any(r.evidence_hash == digest and r.breadth >= BREADTH[scope] for r in given):
            return None
        known = self._remembered(digest)
        if known is not None and not serves(known.scope, scope):
            known = None
        own = Verdict(
            True,
            "low",
            known.summary if known else BY_PERSON,
            (Finding("warning", BY_PERSON),),
            scope,
            evidence.work.subject,
            digest,
            known.criteria if known else (),
            evidence.change.base_tree,
            evidence.change.tree,
            by_person=True,
            due=evidence.work.due,
            questions=known.questions if known else (),
        )
        verdict = settled(own, evidence.findings)
        if not all(result.passed for result in evidence.results) or not accepted(verdict):
            return None
        self._remember(verdict)
        return Judged(verdict, True, 0)

    def _remembered(self, digest: str) -> Verdict | None:
        found = self.store.verdict(self.session.id, digest)
        return verdict_from_json(found) if found else None

    def _remember(self, verdict: Verdict) -> None:
        self.store.remember_verdict(
            self.session.id,
            verdict.evidence_hash,
            verdict.scope,
            verdict.subject,
            self.verifier.log.clock.now(),
            {"task": self.session.task.id if self.session.task else ""} | verdict.to_json(),
            limit=self.settings.memory.evidence_max,
        )
