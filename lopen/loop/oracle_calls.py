"""Judging finished work: evidence gathered by lopen itself, then one request to the oracle at the widest scope.

Where a wider boundary would have the same evidence (the only task of a component, the only component of a
module), the wider question is asked, and its verdict serves the narrower ones (docs/reference/completion.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from lopen.base.events import VerdictGiven
from lopen.documents.spec import Specification
from lopen.git.checkout import Checkout
from lopen.guardrails.completion import holds_inline_tests, required, untested
from lopen.llm.messages import ContextTooLong
from lopen.loop.model_calls import ModelAccess
from lopen.oracle.evidence import Evidence
from lopen.oracle.judge import Judged as Given
from lopen.oracle.judge import judge, too_large
from lopen.oracle.rubric import PROMPT_CHARS
from lopen.oracle.verdict import Finding, Scope, Verdict, accepted, verdict_from_json
from lopen.storage.sessions import SessionStore
from lopen.test_integrity import FileChange, find_tampering
from lopen.tools.results import ToolResult
from lopen.tools.verification import Verified
from lopen.tools.workbench import Workbench
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, Task

LARGEST_COMPARED = 2 * 2**20  # bytes; larger files are not searched for weakened tests


@dataclass(frozen=True, slots=True)
class BoundaryVerdict:
    """A verdict, the verify results it rests on, and whether it lets the work through."""

    verdict: Verdict
    results: tuple[Verified, ...]
    passed: bool


def widest(session: Session, scope: Scope, subject: str) -> tuple[Scope, str]:
    """The widest boundary that has the same evidence as this one."""
    if scope == "task":
        owner = session.tree.owner(subject)
        if owner is None or len(owner.tasks) != 1:
            return scope, subject
        scope, subject = "component", owner.id
    if scope == "component" and len(session.tree.components) == 1:
        return "module", session.module
    return scope, subject


def gathered(bench: Workbench, scope: Scope) -> tuple[Verified, ...]:
    """Fresh results of every verify command the boundary requires, run where there are none."""
    tools = [t for t in demanded(bench, scope) if not t.endswith("_completion")]
    results: list[Verified] = []
    for _ in range(2):  # a command may itself change a lock file, which makes the earlier ones stale
        results = [r for tool in tools if (r := bench.project.verifier.ensured(tool)) is not None]
        if all(bench.project.verifier.fresh(r.tool) is r for r in results):
            break
    return tuple(results)


def demanded(bench: Workbench, scope: Scope) -> tuple[str, ...]:
    """The tools a boundary requires; a module of one component is that component's boundary too."""
    commands = bench.project.verifier.commands
    both = scope == "module" and len(bench.session.tree.components) == 1
    narrower = required("component", commands) if both else ()
    return tuple(dict.fromkeys((*required(scope, commands), *narrower)))


def answer(bench: Workbench, oracle: Judge, scope: Scope, subject: str) -> ToolResult:
    """Return the verdict as a tool's result."""
    judged = oracle.pronounce(bench, scope, subject)
    if judged.passed:
        bench.evidence.confidence = judged.verdict.confidence
    return ToolResult(True, judged.verdict.to_tool_result())


class Judge(Protocol):
    """Whoever judges finished work."""

    def pronounce(self, bench: Workbench, scope: Scope, subject: str) -> BoundaryVerdict:
        """Return the verdict on `subject` as the work tree is now."""
        ...


@dataclass
class OracleCalls:
    """Runs the verifications of a boundary, asks the oracle model, and remembers its verdicts."""

    calls: ModelAccess
    repository: Checkout
    store: SessionStore
    model: str

    def pronounce(self, bench: Workbench, scope: Scope, subject: str) -> BoundaryVerdict:
        """Return the verdict on `subject` as the work tree is now."""
        wide = widest(bench.session, scope, subject)
        results = gathered(bench, wide[0])
        if wide != (scope, subject) and not all(r.passed for r in results):
            # A wider boundary's own commands fail: its evidence is another, and it is judged at its time.
            wide, results = (scope, subject), gathered(bench, scope)
        return self.verdict(bench, evidence_for(bench, self.repository, *wide, results), results)

    def verdict(self, bench: Workbench, evidence: Evidence, results: tuple[Verified, ...]) -> BoundaryVerdict:
        """The remembered verdict on the same evidence, or a new one."""
        session = bench.session.id

        def remembered(evidence_hash: str) -> Verdict | None:
            found = self.store.verdict(session, evidence_hash)
            return verdict_from_json(found) if found else None

        def remember(verdict: Verdict) -> None:
            self.store.remember_verdict(
                session,
                verdict.evidence_hash,
                verdict.scope,
                verdict.subject,
                bench.clock.now(),
                verdict.to_json(),
                limit=bench.settings.memory.evidence_max,
            )

        def given() -> Given:
            for chars in (
                PROMPT_CHARS,
                PROMPT_CHARS // 4,
            ):  # a small model gets more of the diff cut, and told so
                with suppress(ContextTooLong):
                    return judge(
                        evidence,
                        ask=lambda request: self.calls.ask(
                            request, agent="oracle", turn=0, on_text=lambda _: None
                        ),
                        model=self.model,
                        remembered=remembered,
                        remember=remember,
                        prompt_chars=chars,
                    )
            return too_large(evidence)

        judged = given()
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
            )
        )
        return BoundaryVerdict(verdict, results, passed)


def evidence_for(
    bench: Workbench, repository: Checkout, scope: Scope, subject: str, results: tuple[Verified, ...]
) -> Evidence:
    """What the oracle is shown for a boundary."""
    session = bench.session
    spec = bench.project.load_spec(session.module)
    tree = bench.project.verifier.tree()
    base, description, sections, criteria = described(session, spec, scope, subject)
    base = base or tree
    specs = f"specs/{session.module}/"
    changes = [c for c in repository.changes(base, tree) if not c.path.startswith(specs)]
    paths = [c.path for c in changes]
    files = [
        FileChange(c.path, text_at(repository, base, c.path), text_at(repository, tree, c.path))
        for c in changes
    ]
    return Evidence(
        scope=scope,
        subject=subject,
        module=session.module,
        description=description,
        sections=sections,
        criteria=criteria,
        diff=repository.diff(base, tree, paths=paths) if paths else "",
        files_changed=tuple(paths),
        results=tuple(r.as_evidence() for r in results),
        tampering=(*find_tampering(files), *untested_code(bench, files), *left_out(bench)),
        base_tree=base,
        tree=tree,
    )


def untested_code(bench: Workbench, files: Sequence[FileChange]) -> tuple[Finding, ...]:
    """A warning to the oracle and the model where code came without a test; none where there are to be no tests."""
    if not bench.project.verifier.commands.get("verify-tests"):
        return ()
    there = {f.path: f.after for f in files if f.after is not None}
    said = untested(
        added=[f.path for f in files if f.before is None and f.path in there],
        changed=there,
        inline=[path for path, text in there.items() if holds_inline_tests(path, text)],
    )
    return (Finding("warning", said),) if said else ()


def left_out(bench: Workbench) -> tuple[Finding, ...]:
    """A warning for each file that the model wrote and git ignores: what was verified with it may fail without."""
    said = "git ignores this file: it is in no commit, and what needs it fails in a clean clone"
    return tuple(Finding("warning", said, path) for path in sorted(bench.evidence.ignored))


def text_at(repository: Checkout, tree: str, path: str) -> str | None:
    """A file's text in a tree; None where it is not there, not text, or too large to compare."""
    raw = repository.file_at(tree, path)
    if raw is None or b"\0" in raw[:8_000] or len(raw) > LARGEST_COMPARED:
        return None
    return raw.decode("utf-8", "replace")


Described = tuple[str | None, str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]


def described(session: Session, spec: Specification, scope: Scope, subject: str) -> Described:
    """Base tree, description, sections and criteria of a boundary's subject."""
    tree = session.tree
    if scope == "module":
        sections = [s for c in tree.components for s in c.spec_sections]
        names = ", ".join(c.name for c in tree.components)
        return (
            _first_base(tree.components),
            f"Module {subject}: {names}",
            _sections(spec, sections),
            _criteria(spec),
        )
    if scope == "component":
        component = tree.component(subject)
        assert component is not None
        return (
            component.base,
            f"Component {component.name}: {component.description}",
            _sections(spec, component.spec_sections),
            _criteria(spec, component.criteria),
        )
    task, owner = tree.task(subject), tree.owner(subject)
    assert task is not None
    assert owner is not None
    return (
        task.base,
        _task_text(task, owner),
        _sections(spec, task.spec_sections or owner.spec_sections),
        _criteria(spec, owner.criteria),
    )


def _task_text(task: Task, owner: Component) -> str:
    lines = [f"Task {task.name} (one of {len(owner.tasks)} of component {owner.name}): {task.description}"]
    lines += [f"- {s.name}" for s in task.subtasks]
    return "\n".join(lines)


def _first_base(components: tuple[Component, ...]) -> str | None:
    return next((c.base for c in components if c.base), None)


def _sections(spec: Specification, names: tuple[str, ...] | list[str]) -> tuple[tuple[str, str], ...]:
    found = dict.fromkeys(s for name in names if (s := spec.outline.get(name)) is not None)
    return tuple((" > ".join(s.path), spec.outline.full_text(s)) for s in found)


def _criteria(spec: Specification, ids: tuple[str, ...] | None = None) -> tuple[tuple[str, str], ...]:
    return tuple((c.id, c.text) for c in spec.criteria if ids is None or c.id in ids)
