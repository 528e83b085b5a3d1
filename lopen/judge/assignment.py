"""The assignment of a piece of work: its description, sections, criteria and due ones among them, and earlier
verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence

from lopen.files.listing import glob_matcher
from lopen.judge.evidence import Assignment
from lopen.judge.verdict import Scope, Verdict, accepted
from lopen.models.prompts.prompt import named, outermost
from lopen.specification.drift import Drift, compare_hashes, section_hashes
from lopen.specification.sections import SEPARATOR, normalise_name
from lopen.specification.spec import (
    ACCEPTANCE_CRITERIA,
    OPTIONAL,
    OVERVIEW,
    REQUIRED,
    SKILLS_AND_HOOKS,
    Specification,
)
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, State, Task

ASSUMED = "assumed, since nobody answered"
ALLOWED = "A person allowed it when approving the specification."


class TestRemovals:
    """Why tests may be removed: a person allowed it, or the specification that the work rests on changed.

    lopen does not report such removals as errors itself: the judge, or a person at the gate, decides about them.
    """

    def __init__(self, session: Session, spec: Specification, sections: Sequence[str]) -> None:
        """`sections`: the sections that the work rests on, by their addresses."""
        approval = session.approval
        drift = compare_hashes(approval.sections, section_hashes(spec.outline)) if approval else Drift()
        approved = SKILLS_AND_HOOKS not in (*drift.changed, *drift.new)
        own = spec.tests_may_go if approval and approved else ()
        self._globs = (*(approval.test_removals if approval else ()), *own)
        changed = dict.fromkeys((*(approval.changed if approval else ()), *drift.changed, *drift.removed))
        self._changed = [a for a in changed if any(_overlap(a, s) for s in (ACCEPTANCE_CRITERIA, *sections))]
        self.given: set[str] = set()

    def reason(self, path: str) -> str:
        """Return why tests of this file may be removed; empty where they may not. `given`: the returned values."""
        found = ""
        if any(glob in ("**", "*") or glob_matcher(glob)(path.split("/")) for glob in self._globs):
            found = ALLOWED
        elif self._changed:
            changed = ", ".join(self._changed)
            found = f"The specification changed since they were written ({changed}): say whether that made them obsolete."
        self.given |= {found} - {""}
        return found


def _overlap(one: str, other: str) -> bool:
    """Return True if one address is the other one's, or that of a section above it."""
    one, other = (normalise_name(address) + SEPARATOR for address in (one, other))
    return one.startswith(other) or other.startswith(one)


def due_criteria(session: Session, scope: Scope, subject: str, criteria: Sequence[str]) -> tuple[str, ...]:
    """Return the criteria that need a `yes` of this verdict: none of a task, all of the module.

    A component leaves a criterion to the module if another, incomplete component is to meet it too.
    """
    if scope == "task":
        return ()
    others = [c for c in session.tree.components if c.id != subject and c.state is not State.COMPLETE]
    shared = {name for c in others for name in c.criteria} if scope == "component" else set()
    return tuple(name for name in criteria if name not in shared)


def found_done(session: Session, scope: Scope, subject: str) -> list[str]:
    """The files and folders that step 3 named as evidence for components it found done."""
    done = [c for c in session.tree.components if c.found == "done" and not c.tasks]
    return [p.strip("/") for c in done if scope == "module" or c.id == subject for p in c.evidence]


def last_verdict(verdicts: Sequence[Verdict], scope: Scope, subject: str) -> Verdict | None:
    """Return the last verdict on this work, if it did not pass."""
    ours = [v for v in verdicts if (v.scope, v.subject) == (scope, subject)]
    return ours[-1] if ours and not accepted(ours[-1]) else None


def narrower_verdicts(
    session: Session, scope: Scope, subject: str, verdicts: Sequence[Verdict]
) -> tuple[tuple[str, Verdict], ...]:
    """Return (name, verdict): the latest accepted verdict of each task (and component) that belongs to the subject."""
    components = [c for c in session.tree.components if scope == "module" or c.id == subject]
    names = {c.id: c.name for c in components} | {t.id: t.name for c in components for t in c.tasks}
    latest = {v.subject: v for v in verdicts if v.subject in names}
    return tuple((names[i], verdict) for i, verdict in latest.items())


def unjudged_tasks(component: Component, narrower: Sequence[Verdict]) -> tuple[Task, ...]:
    """Return the tasks of a component that none of the accepted, `narrower` verdicts is about."""
    judged = {verdict.subject for verdict in narrower}
    return () if component.id in judged else tuple(t for t in component.tasks if t.id not in judged)


def assignment(
    session: Session,
    spec: Specification,
    scope: Scope,
    subject: str,
    present: str,
    narrower: Sequence[Verdict],
) -> tuple[str, Assignment]:
    """Return the tree from which a piece of work began (the `present` one where none did), and its assignment.

    `narrower` are the accepted verdicts on its parts; the tasks that they do not tell of are described.
    """
    base, text, choices, ids = _described(session, scope, subject, narrower)
    sections = _sections(spec, *choices)
    overview = spec.outline.get(OVERVIEW)  # the builder is shown it, too
    if overview is not None and all(address != overview.address for address, _ in sections):
        sections = ((overview.address, spec.outline.full_text(overview)), *sections)
    criteria = tuple((c.id, c.text) for c in spec.criteria if ids is None or c.id in ids)
    due = due_criteria(session, scope, subject, [name for name, _ in criteria])
    own = tuple(f"{task.id}: " for task in session.tree.tasks)
    claims = tuple(text for text in session.dialogue.assumptions if text.startswith(own))
    assumed = ((text, ASSUMED) for text in session.dialogue.assumptions if text not in claims)
    answers = (*session.dialogue.answers, *assumed)
    work = Assignment(scope, subject, session.module, text, sections, criteria, due, answers, claims)
    return base or present, work


def _described(
    session: Session, scope: Scope, subject: str, narrower: Sequence[Verdict]
) -> tuple[str | None, str, tuple[Sequence[str], ...], Sequence[str] | None]:
    """Return base tree, description, choices of section names and ids of criteria (None: all) of a subject."""
    tree = session.tree
    every = tuple(s for c in tree.components for s in c.spec_sections)
    if scope == "module":
        text = "\n".join([f"Module {subject}:", *(_component_text(c, narrower) for c in tree.components)])
        return next((c.base for c in tree.components if c.base), None), text, (every,), None
    if scope == "component":
        component = tree.component(subject)
        assert component is not None
        choices = (component.spec_sections, every)
        return component.base, _component_text(component, narrower), choices, component.criteria
    task, owner = tree.task(subject), tree.owner(subject)
    assert task is not None
    assert owner is not None
    nearest_first = (task.spec_sections, owner.spec_sections, every)
    text = "\n".join([_task_text(task, owner), _reason(task, owner)])
    return task.base, text, nearest_first, owner.criteria_of(task)


def _component_text(component: Component, narrower: Sequence[Verdict]) -> str:
    """The component, with its tasks that no narrower verdict tells of."""
    tasks = (_task_text(task, component) for task in unjudged_tasks(component, narrower))
    return "\n".join([f"Component {component.name}: {component.description}", *tasks])


def _reason(task: Task, owner: Component) -> str:
    if task.added:
        return "The task was added after planning; its description says why."
    return f"The task was planned as a part of the component: {owner.description}"


def _task_text(task: Task, owner: Component) -> str:
    lines = [f"Task {task.name} (one of {len(owner.tasks)} of component {owner.name}): {task.description}"]
    lines += [f"- {s.name}" for s in task.subtasks]
    return "\n".join(lines)


def _sections(spec: Specification, *choices: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The first of the choices that names a section there is; else all of the domain: headings may be renamed."""
    found = next((there for names in choices if (there := outermost(spec, named(spec, names)))), None)
    if found is None:
        structural = {normalise_name(title) for title in (*REQUIRED, *OPTIONAL)}
        found = [
            s for s in spec.outline.sections if s.level == 2 and normalise_name(s.title) not in structural
        ]
    return tuple((s.address, spec.outline.full_text(s)) for s in found)
