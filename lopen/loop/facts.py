"""The facts, observed before every iteration: the specification, its drift, the commits; spending and habits.

Effects read; `lopen.workflow` decides, and returns the session to go on with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lopen.core.events import DriftFound, Event, Notice, StepEntered, TaskChanged
from lopen.git.repository import Repository
from lopen.guardrails.guard import GuardFacts, OpenCircuit
from lopen.guardrails.habits import lasting_habits
from lopen.loop.context import SessionContext
from lopen.specification.drift import Drift, compare_hashes, section_hashes
from lopen.specification.sections import SEPARATOR, normalise_name
from lopen.specification.spec import SKILLS_AND_HOOKS, Specification
from lopen.workflow import changes
from lopen.workflow.next_step import assess
from lopen.workflow.pauses import Pause, gate
from lopen.workflow.session import Approval, Session
from lopen.workflow.steps import ORDER, Step, number, phase_of
from lopen.workflow.task_tree import State


@dataclass(frozen=True, slots=True)
class Observed:
    """The session after the facts, the events to publish, and the reason to wait (None: it need not)."""

    session: Session
    events: tuple[Event, ...] = ()
    pause: Pause | None = None


def observe(
    session: Session, spec: Specification, approval: Approval | None, repository: Repository
) -> Observed:
    """Compare the session's record with the specification and the repository."""
    events: list[Event] = []
    if approval is not None and session.approval is not None and approval != session.approval:
        session = changes.renew_approval(session, approval)
    hashes = section_hashes(spec.outline)
    pause = _must_wait(session, spec, hashes)
    if pause is not None:
        return Observed(session, tuple(events), pause)
    session, told = _drifted(session, hashes)
    events += told
    session, told = _reopened(session, repository)
    events += told
    session, told = assessed(session)
    return Observed(session, (*events, *told))


def _must_wait(session: Session, spec: Specification, hashes: dict[str, str]) -> Pause | None:
    """Nothing goes on without an approval, over a refused specification, or with unapproved commands."""
    if session.approval is None:
        return None
    if spec.problems:
        return gate(
            session.module,
            f"the specification no longer passes `lopen check`: {spec.problems[0]}",
        )
    if _commands_of(hashes) != _commands_of(session.approval.sections):
        return gate(session.module, "the verify commands (Skills & Hooks) changed and are not approved")
    return None


def _commands_of(hashes: Mapping[str, str]) -> dict[str, str]:
    return {
        k: v
        for k, v in hashes.items()
        if normalise_name(k.split(SEPARATOR)[0]) == normalise_name(SKILLS_AND_HOOKS)
    }


def _drifted(session: Session, hashes: dict[str, str]) -> tuple[Session, list[Event]]:
    """Report drift once, and go back to the earliest step it touches."""
    if not session.plan.sections:
        return session, []
    drift = compare_hashes(session.plan.sections, hashes)
    if not drift.any:
        return session, []
    back = drift.reentry
    if back is not None and ORDER.index(session.step) <= ORDER.index(back) and session.plan.replan is None:
        back = None  # that step is still ahead
    replan = _earliest(session.plan.replan, back)
    effect = f"back to step {number(back)} ({back.value})" if back else "reported; the plan stands"
    shown = drift.named
    told: Event = DriftFound(shown.changed, shown.new, shown.removed, effect)
    return changes.note_drift(session, hashes, replan, _note(shown)), [told]


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


def _reopened(session: Session, repository: Repository) -> tuple[Session, list[Event]]:
    """Open a complete task again if neither its commit nor one with its trailer is reachable."""
    committed = [t for t in session.tree.tasks if t.state is State.COMPLETE and t.commit]
    if session.branch is None or not committed:
        return session, []
    tip = repository.branch_tip(session.branch)
    ref = session.branch if tip else "HEAD"
    at = (
        tip or repository.head().commit or "HEAD"
    )  # one commit to the end, wherever a person moves the branch
    there = repository.commit_ids(at, since=session.start_commit)
    missing = [t for t in committed if t.commit not in there]
    if not missing:
        return session, []
    commits = repository.session_commits(within=at, since=session.start_commit)
    trailers = {(c.session, c.task) for c in commits}
    lost = [t for t in missing if (session.id, t.id) not in trailers]
    # git's history counts for more than the trailers of a message.
    gone = {t.id: t for t in lost if not repository.reachable(t.commit or "", at)}
    told: list[Event] = []
    for task in gone.values():
        owner = session.tree.owner(task.id)
        why = f"its commit {(task.commit or '')[:12]} is not reachable from {ref}"
        told.append(TaskChanged(task.id, task.name, owner.name if owner else "", State.PENDING.value, why))
        told.append(Notice("warning", f"task {task.id} is open again: {why}"))
    return changes.reopen_tasks(session, gone) if gone else session, told


def assessed(session: Session) -> tuple[Session, list[Event]]:
    """Stand where the facts say; a step other than the saved one is told."""
    step = assess(session)
    if step is session.step:
        return session, []
    told = StepEntered(step.value, number(step), phase_of(step), "assessment")
    return changes.enter_assessed(session, step), [told]


def guard_facts(context: SessionContext) -> GuardFacts:
    """Gather the facts that the guardrails check before an iteration."""
    settings, gate = context.settings, context.guards.meter.gate
    facts = GuardFacts(
        context.record.journal.session,
        context.clock.now(),
        settings.workflow.failure_threshold,
        context.guards.meter.standing(),
        _open_circuit(context),
    )
    habits = lasting_habits(gate.calls(), facts.subject, settings.tool_discipline)
    return replace(facts, habits=habits)


def _open_circuit(context: SessionContext) -> OpenCircuit | None:
    state = context.guards.meter.gate.circuit()
    if state is None or not state.tripped:
        return None
    until = datetime.fromtimestamp(state.cooldown_until, UTC) if state.cooldown_until else None
    if state.tripped_at and context.clock.now().timestamp() < state.tripped_at:
        until = None  # the clock was set back: the breaker does not wait for it either
    return OpenCircuit(state.circuit_id, state.rule, state.trip_reason, until, state.needs_ack)
