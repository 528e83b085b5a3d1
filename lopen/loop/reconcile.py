"""Observation: what is true now, seen before every iteration — the specification, its drift, the commits.

Effects read; what follows from it is decided in `lopen.workflow` and returned as the session to go on with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lopen.base.events import DriftFound, Event, Notice, StepEntered, TaskChanged
from lopen.base.hashing import content_hash
from lopen.documents.drift import Drift, compare_hashes, section_hashes
from lopen.documents.sections import SEPARATOR, normalise_name
from lopen.documents.spec import SKILLS_AND_HOOKS, Specification
from lopen.git.checkout import Checkout
from lopen.workflow.assess import assess, facts_of
from lopen.workflow.pauses import gate_pause
from lopen.workflow.session import Approval, Pause, Session
from lopen.workflow.steps import ORDER, Step, number, phase_of
from lopen.workflow.task_tree import State, reopened


@dataclass(frozen=True, slots=True)
class Observed:
    """The session as the facts have it, what is to be told, and why it must wait (None: it need not)."""

    session: Session
    events: tuple[Event, ...] = ()
    pause: Pause | None = None


def observe(
    session: Session, spec: Specification, approval: Approval | None, repository: Checkout
) -> Observed:
    """Compare the session's record with the specification and the repository."""
    events: list[Event] = []
    if approval is not None and session.approval is not None and approval != session.approval:
        session = replace(session, approval=approval)
    hashes = section_hashes(spec)
    pause = _must_wait(session, spec, hashes)
    if pause is not None:
        return Observed(session, tuple(events), pause)
    session, told = _drifted(session, hashes)
    events += told
    session, told = _reopened(session, repository)
    events += told
    session, told = _assessed(session)
    return Observed(session, (*events, *told))


def _must_wait(session: Session, spec: Specification, hashes: dict[str, str]) -> Pause | None:
    """Nothing goes on without an approval, over a refused specification, or with unapproved commands."""
    if session.approval is None:
        return None
    if spec.problems:
        return gate_pause(
            session.module,
            f"the specification no longer passes `lopen check`: {spec.problems[0]}",
        )
    if _commands_of(hashes) != _commands_of(session.approval.sections):
        return gate_pause(session.module, "the verify commands (Skills & Hooks) changed and are not approved")
    return None


def _commands_of(hashes: Mapping[str, str]) -> dict[str, str]:
    return {
        k: v
        for k, v in hashes.items()
        if normalise_name(k.split(SEPARATOR)[0]) == normalise_name(SKILLS_AND_HOOKS)
    }


def _drifted(session: Session, hashes: dict[str, str]) -> tuple[Session, list[Event]]:
    """Report drift once, and go back to the earliest step it touches."""
    if not session.planned:
        return session, []
    drift = compare_hashes(session.planned, hashes)
    if not drift.any:
        return session, []
    back = drift.reentry
    if back is not None and ORDER.index(session.step) <= ORDER.index(back) and session.replan is None:
        back = None  # that step is still ahead
    replan = _earliest(session.replan, back)
    effect = f"back to step {number(back)} ({back.value})" if back else "reported; the plan stands"
    shown = drift.named
    told: Event = DriftFound(shown.changed, shown.new, shown.removed, effect)
    return replace(session, planned=hashes, replan=replan, notes=(*session.notes, _note(shown))), [told]


def _earliest(one: Step | None, other: Step | None) -> Step | None:
    steps = [s for s in (one, other) if s is not None]
    return min(steps, key=ORDER.index) if steps else None


def _note(drift: Drift) -> str:
    parts = [
        f"{word}: {', '.join(names)}"
        for word, names in (("changed", drift.changed), ("new", drift.new), ("removed", drift.removed))
        if names
    ]
    return f"The specification changed since the plan was made ({'; '.join(parts)}). Read what concerns you again."


def _reopened(session: Session, repository: Checkout) -> tuple[Session, list[Event]]:
    """A complete task stays complete while its commit, or one with its trailer, is reachable.

    What a commit reaches never changes: the same commits are not looked for below the same tip again.
    """
    committed = [t for t in session.tree.tasks if t.state is State.COMPLETE and t.commit]
    if session.branch is None or not committed:
        return session, []
    tip = repository.branch_tip(session.branch)
    ref = session.branch if tip else "HEAD"
    at = (
        tip or repository.head().commit or "HEAD"
    )  # one commit to the end, wherever a person moves the branch
    whole = content_hash("\n".join((at, *(t.commit or "" for t in committed))))
    if whole == session.whole:
        return session, []
    there = repository.commit_ids(at, since=session.start_commit)
    missing = [t for t in committed if t.commit not in there]
    if not missing:
        return replace(session, whole=whole), []
    commits = repository.session_commits(within=at, since=session.start_commit)
    trailers = {(c.session, c.task) for c in commits}
    lost = [t for t in missing if (session.id, t.id) not in trailers]
    # What git says of history counts for more than what a message says of itself.
    gone = {t.id: t for t in lost if not repository.reachable(t.commit or "", at)}
    told: list[Event] = []
    for task in gone.values():
        owner = session.tree.owner(task.id)
        why = f"its commit {(task.commit or '')[:12]} is not reachable from {ref}"
        told.append(TaskChanged(task.id, task.name, owner.name if owner else "", State.PENDING.value, why))
        told.append(Notice("warning", f"task {task.id} is open again: {why}"))
    return replace(session, tree=reopened(session.tree, gone)) if gone else replace(
        session, whole=whole
    ), told


def _assessed(session: Session) -> tuple[Session, list[Event]]:
    """Stand where the facts say; a step other than the saved one is told."""
    step = assess(facts_of(session, approved=session.approval is not None))
    if step is session.step:
        return session, []
    selected = session.selected if ORDER.index(step) > ORDER.index(Step.SELECT_NEXT_COMPONENT) else None
    if step is Step.REPEAT:
        selected = session.selected
    told = StepEntered(step.value, number(step), phase_of(step), "assessment")
    return replace(session, step=step, selected=selected), [told]
