"""Assessment: the step a session is in, computed from facts, never from its saved step. Pure.

See docs/reference/workflow.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from lopen.workflow.machine import reachable
from lopen.workflow.session import Session
from lopen.workflow.steps import ORDER, Step
from lopen.workflow.task_tree import Component, State


@dataclass(frozen=True, slots=True)
class Facts:
    """What observation found. `approved`: a person opened the gate for this session.

    `components`: step 3 is recorded, with a scope to compare with; what was only rebuilt from a plan is not.
    """

    approved: bool
    dependencies: bool
    components: bool
    replan: Step | None
    selected: Component | None


def facts_of(session: Session, *, approved: bool) -> Facts:
    """The facts that lie in the session's own record."""
    return Facts(
        approved=approved,
        dependencies=session.dependencies is not None,
        components=bool(session.tree.components) and scope_of(session).known,
        replan=session.replan,
        selected=session.tree.component(session.selected) if session.selected else None,
    )


def standing(session: Session) -> Step:
    """The step an unfinished session stands in for whoever looks at it: a revert leaves none that is complete."""
    if session.finished or session.step is not Step.COMPLETE:
        return session.step
    return assess(facts_of(session, approved=session.approval is not None))


def assess(facts: Facts) -> Step:
    """The step these facts put a session in: the earliest one whose result is not there."""
    step = _from_plan(facts)
    if facts.replan is not None and ORDER.index(facts.replan) < ORDER.index(step):
        step = facts.replan
    # No landing but where the table leads: without an approval nothing lies beyond the gate.
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
    """Completed and original scope: acceptance criteria and components."""

    completed: int
    original: int | None

    @property
    def known(self) -> bool:
        """There is a scope to compare with; zero counts as unknown."""
        return bool(self.original)

    @property
    def reached(self) -> bool:
        """Everything of the original scope is done."""
        return self.original is not None and self.known and self.completed >= self.original


def scope_of(session: Session) -> Scope:
    """What of the original scope is verified: a criterion holds once every component covering it is complete."""
    components = session.tree.components
    done = {c.id for c in components if c.state is State.COMPLETE}
    held = sum(
        any(criterion in c.criteria for c in components)
        and all(c.id in done for c in components if criterion in c.criteria)
        for criterion in session.criteria
    )
    return Scope(len(done) + held, session.original_scope)
