"""Compute the step of a session from facts, never from its saved step (docs/reference/workflow.md). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lopen.workflow.session import Session
from lopen.workflow.steps import ORDER, Step, reachable
from lopen.workflow.task_tree import Component, State


@dataclass(frozen=True, slots=True)
class Facts:
    """The observed facts about a session. `approved`: a person approved the specification for this session.

    `components`: step 3 is recorded with a scope to compare with; a plan rebuilt from `plan.md` does not count.
    """

    approved: bool
    dependencies: bool
    components: bool
    replan: Step | None
    selected: Component | None


def facts_of(session: Session, *, approved: bool) -> Facts:
    """Return the facts in the session's own record."""
    return Facts(
        approved=approved,
        dependencies=session.dependencies is not None,
        components=bool(session.tree.components) and scope_of(session).known,
        replan=session.replan,
        selected=session.tree.component(session.selected) if session.selected else None,
    )


def displayed_step(session: Session) -> Step:
    """Return the step to display for a session. After a revert an unfinished session is never in the last step."""
    if session.finished or session.step is not Step.COMPLETE:
        return session.step
    return assess(facts_of(session, approved=session.approval is not None))


def assess(facts: Facts) -> Step:
    """Return the earliest step whose result is missing."""
    step = _from_plan(facts)
    if facts.replan is not None and ORDER.index(facts.replan) < ORDER.index(step):
        step = facts.replan
    # Only steps that the table leads to: without an approval no step after the gate.
    allowed = reachable(Step.DRAFT_SPECIFICATION, past_gate=facts.approved)
    return step if step in allowed else Step.DRAFT_SPECIFICATION


def _from_plan(facts: Facts) -> Step:
    if not facts.approved:
        return Step.DRAFT_SPECIFICATION
    if not facts.dependencies:
        return Step.DETERMINE_DEPENDENCIES
    if not facts.components:
        return Step.IDENTIFY_COMPONENTS
    component = facts.selected
    if component is None:
        return Step.SELECT_NEXT_COMPONENT
    if component.state is State.COMPLETE:
        return Step.REPEAT
    if not component.open_tasks and not component.broken_down:
        return Step.BREAK_INTO_TASKS
    return Step.ITERATE_THROUGH_TASKS


@dataclass(frozen=True, slots=True)
class Scope:
    """The completed and the original scope: numbers of acceptance criteria and components."""

    completed: int
    original: int | None

    @property
    def known(self) -> bool:
        """True if there is an original scope; zero counts as unknown."""
        return bool(self.original)

    @property
    def reached(self) -> bool:
        """True if the whole original scope is complete."""
        return self.original is not None and self.known and self.completed >= self.original


def met_criteria(session: Session) -> frozenset[str]:
    """Return the recorded criteria that are met: every component that covers one is complete."""
    components = session.tree.components
    covering = {i: [c for c in components if i in c.criteria] for i in session.criteria}
    return frozenset(i for i, of in covering.items() if of and all(c.state is State.COMPLETE for c in of))


def standing_work(session: Session) -> frozenset[str]:
    """Return the ids of the complete tasks, the verified components, and the module where it is finished."""
    done = {t.id for t in session.tree.tasks if t.state is State.COMPLETE}
    done |= {c.id for c in session.tree.components if c.verified}
    return frozenset(done | ({session.module} if session.finished else set()))


def scope_of(session: Session) -> Scope:
    """Return the verified part of the scope: its criteria that are met and its complete components."""
    done = sum(c.state is State.COMPLETE for c in session.tree.components)
    return Scope(done + len(met_criteria(session)), session.original_scope)
