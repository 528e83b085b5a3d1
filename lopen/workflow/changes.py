"""The changes of a session. Each function returns the changed session; no other room replaces fields of one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from lopen.core.errors import LopenError
from lopen.workflow.pauses import (
    BOUNDARIES,
    LOOK_AT_IT,
    BudgetThreshold,
    Confirmation,
    FailuresInRow,
    Halt,
    Pause,
    Question,
    Reason,
    UndecidedVerdict,
    waits_for_answer,
)
from lopen.workflow.session import (
    GUIDANCE,
    Approval,
    CommitIntent,
    Dependency,
    Dialogue,
    Plan,
    RevertIntent,
    Session,
    SessionLimits,
)
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import State, Task, TaskTree, completed_again, reopened


def _plan(session: Session, plan: Plan) -> Session:
    return replace(session, plan=plan)


def _limits(session: Session, limits: SessionLimits) -> Session:
    return replace(session, limits=limits)


def _dialogue(session: Session, dialogue: Dialogue) -> Session:
    return replace(session, dialogue=dialogue)


# The run: starting, pausing, ending


def start_run(session: Session, *, granted: int, request: str) -> Session:
    """Take the session up in a process, with its grant of iterations and the person's words.

    A question or confirmation that nobody answered stays open.
    """
    return replace(
        session,
        status="running",
        pause=session.pause if waits_for_answer(session.pause) else None,
        limits=replace(session.limits, iterations_granted=granted),
        dialogue=replace(session.dialogue, request=request or session.dialogue.request),
    )


def pause_for(session: Session, pause: Pause, corrections: Sequence[str] = ()) -> Session:
    """Let the session wait; the model hears `corrections` when it goes on."""
    return add_corrections(replace(session, status="paused", pause=pause), corrections)


def clear_pause(session: Session) -> Session:
    """Let the session go on with the next run."""
    return replace(session, pause=None)


def stop_run(session: Session) -> Session:
    """Mark the session as paused: no process works on it."""
    return replace(session, status="paused")


def fail_run(session: Session) -> Session:
    """Mark the session as failed; it can be resumed."""
    return replace(session, status="failed", pause=None)


def note_commands(session: Session, digest: str) -> Session:
    """Record that the verify commands with this digest were seen to start."""
    return replace(session, commands_started=digest)


def leave_branch(session: Session, branch: str | None) -> Session:
    """Record the branch that the person was on before the module's branch began."""
    return replace(session, start_branch=branch)


def begin_branch(session: Session, branch: str, commit: str) -> Session:
    """Record the module's branch and its first commit."""
    return replace(session, branch=branch, start_commit=commit)


def try_changed_specification(session: Session) -> Session:
    """End a pause after attempts that were not accepted: a person approved the specification anew."""
    asked = session.pause.reason if isinstance(session.pause, Confirmation) else None
    return clear_pause(_count_anew(session, asked.subject)) if isinstance(asked, FailuresInRow) else session


def renew_approval(session: Session, approval: Approval) -> Session:
    """Take a newer approval of a specification that the plan was made for."""
    return replace(session, approval=approval)


def settle_halt(session: Session, command: str) -> Session:
    """Name the command that goes on, now that a person has settled the cause of the pause."""
    assert isinstance(session.pause, Halt)
    return replace(session, pause=replace(session.pause, command=command))


def limit_cost(session: Session, most_usd: float) -> Session:
    """Set the person's `--max-cost`, which holds for later runs too."""
    return _limits(session, replace(session.limits, max_cost_usd=most_usd))


def join_group(session: Session, group: str) -> Session:
    """Let the session share the budget of the modules that are built together."""
    return _limits(session, replace(session.limits, group=group))


# The specification and the plan


def write_specification(session: Session, spec_hash: str) -> Session:
    """Record that step 1 wrote the specification with this hash; a plan for another text is dropped."""
    return _plan(session, Plan(made_for=spec_hash))


def approve(session: Session, approval: Approval) -> Session:
    """Take a person's approval of the specification as the one to build.

    A plan that step 1 made for exactly this text holds, and the text stands for the request that it was written
    from. A plan for another text is dropped.
    """
    written = session.plan.made_for == approval.spec_hash
    plan = replace(session.plan if written else Plan(), sections=dict(approval.sections))
    session = replace(session, approval=approval, plan=plan, pause=None)
    return _dialogue(session, replace(session.dialogue, request="")) if written else session


def note_drift(session: Session, sections: Mapping[str, str], replan: Step | None, note: str) -> Session:
    """Record the specification's sections as they are now, and the planning step that is due again."""
    return add_notes(_plan(session, replace(session.plan, sections=sections, replan=replan)), note)


def record_dependencies(session: Session, found: tuple[Dependency, ...]) -> Session:
    """Record step 2's result. Components that rest on earlier dependencies are due again."""
    replan = Step.IDENTIFY_COMPONENTS if session.tree.components else None
    return _plan(session, replace(session.plan, dependencies=found, replan=replan))


def record_components(session: Session, tree: TaskTree, criteria: Mapping[str, str]) -> Session:
    """Record step 3's result; components and criteria become the original scope."""
    plan = replace(
        session.plan,
        tree=tree,
        criteria=criteria,
        original_scope=len(criteria) + len(tree.components),
        replan=None,
        selected=None,
    )
    return _plan(session, plan)


def select_component(session: Session, component_id: str | None) -> Session:
    """Select a component; None where none is worked on."""
    return _plan(session, replace(session.plan, selected=component_id))


def record_tasks(session: Session, component_id: str, tasks: Sequence[Task]) -> Session:
    """Record step 5's result: the tasks go behind the component's earlier tasks."""
    component = session.tree.component(component_id)
    assert component is not None
    changed = replace(component, tasks=(*component.tasks, *tasks), broken_down=True, verified=False)
    planned = session.plan.planned_tasks + len(tasks)
    return _plan(
        session,
        replace(session.plan, tree=session.tree.with_component(changed), planned_tasks=planned),
    )


def enter_assessed(session: Session, step: Step) -> Session:
    """Put the session into the step that the facts give; before step 5 no component is selected."""
    selects = step in (Step.BREAK_INTO_TASKS, Step.ITERATE_THROUGH_TASKS, Step.REPEAT)
    return select_component(stand_in(session, step), session.plan.selected if selects else None)


def stand_in(session: Session, step: Step) -> Session:
    """Put the session into a step; a row of failures of another step ends."""
    return session if step is session.step else end_step_failures(replace(session, step=step))


def end_step_failures(session: Session) -> Session:
    """End the row of failures of a step, with its corrections."""
    session = _limits(session, replace(session.limits, step_failures=0))
    return _dialogue(session, replace(session.dialogue, corrections=()))


# Tasks and components


def with_tree(session: Session, tree: TaskTree) -> Session:
    """Replace the plan's components and tasks."""
    return _plan(session, replace(session.plan, tree=tree))


def with_task(session: Session, task: Task) -> Session:
    """Replace the task of the same id."""
    return with_tree(session, session.tree.with_task(task))


def begin_iteration(session: Session, corrections: Sequence[str]) -> Session:
    """Count an iteration, whose model is told `corrections`."""
    limits = replace(session.limits, iterations=session.limits.iterations + 1)
    return _dialogue(_limits(session, limits), replace(session.dialogue, corrections=tuple(corrections)))


def give_iteration_back(session: Session) -> Session:
    """Do not count an iteration that had no response of a model."""
    return _limits(session, replace(session.limits, iterations=session.limits.iterations - 1))


def begin_task(session: Session, task: Task, tree_id: str) -> Session:
    """Start or continue the task of the selected component; `tree_id` is the base of its diff where it has none."""
    component = session.plan.component
    assert component is not None
    base = task.base or tree_id
    task = task if task.state is State.IN_PROGRESS else task.to(State.IN_PROGRESS)
    tree = session.tree.with_component(replace(component, base=component.base or base))
    return with_tree(session, tree.with_task(replace(task, base=base)))


def add_task(session: Session, component_id: str, task: Task) -> Session:
    """Add an unplanned task at the end of a component."""
    return with_tree(session, session.tree.with_added(component_id, task))


def split_task(session: Session, pieces: Sequence[Task]) -> Session:
    """Replace a task by pieces, the first of which keeps its id; the others count as planned unless it was added."""
    planned = session.plan.planned_tasks + sum(not piece.added for piece in pieces[1:])
    return _plan(session, replace(session.plan, tree=session.tree.with_split(pieces), planned_tasks=planned))


def skip_task(session: Session, task_id: str, reason: str) -> Session:
    """Skip a task by a person's word; a pause because of that task ends.

    Raises:
        LopenError: the task is complete, or there is none of that id.
    """
    task = session.tree.task(task_id)
    if task is None:
        raise LopenError(f"no task named {task_id}", hint="lopen status shows the tasks")
    if task.state is State.COMPLETE:
        raise LopenError(
            f"{task_id} is complete", hint=f"to undo completed work: lopen revert {session.module}"
        )
    skipped = replace(task, given_up=" ".join(reason.split()) or "no reason given", state=State.FAILED)
    session, pause = with_task(session, skipped), session.pause
    asked = pause.reason if isinstance(pause, Confirmation) else None
    return clear_pause(session) if isinstance(asked, FailuresInRow) and asked.subject == task_id else session


def put_aside(session: Session, intent: RevertIntent) -> Session:
    """Record the backup of a skipped task's work, before that work is removed from the files."""
    task = session.tree.task(intent.skipped)
    assert task is not None
    return intend_revert(with_task(session, replace(task, aside=intent.backup)), intent)


def count_rejection(session: Session, reason: str, digest: str) -> Session:
    """Count a rejection of the task in progress as a failed attempt; `digest` is the hash of its evidence."""
    assert session.task is not None
    session = with_task(session, session.task.rejected(reason))
    return _limits(session, replace(session.limits, rejected=digest))


def reopen_skipped(session: Session, task_id: str) -> Session:
    """Open a skipped task again, because a person undid that; its failures still count.

    A pause because nothing could go on without the task ends.
    """
    task = session.tree.task(task_id)
    if task is None or not task.given_up:
        return session
    state = State.FAILED if task.base else State.PENDING
    if session.pause is not None and session.pause.kind == "guardrail":
        session = clear_pause(session)
    return with_task(session, replace(task, given_up="", aside="", state=state))


def complete_task(session: Session, task: Task, commit: str) -> Session:
    """Complete the task in progress with its commit; forget its failures and the remarks about them."""
    done = replace(task.to(State.COMPLETE), commit=commit, failures=0, reasons=())
    done = replace(done, subtasks=tuple(replace(s, done=True) for s in done.subtasks))
    session = with_task(session, done)
    return replace(
        session,
        intents=replace(session.intents, commit=None),
        dialogue=replace(session.dialogue, corrections=(), notes=()),
    )


def complete_component(session: Session, component_id: str) -> Session:
    """Record that a component's verification passed; the module's own row of failures stays."""
    component = session.tree.component(component_id)
    assert component is not None
    session = with_tree(
        session, session.tree.with_component(replace(component, verified=True, broken_down=True))
    )
    return _limits(session, replace(session.limits, boundary_failures=0))


def complete_module(session: Session) -> Session:
    """Record that the module's verification passed: the session is complete."""
    return _count_anew(replace(session, status="complete"), BOUNDARIES)


def fail_boundary(session: Session, component_id: str, task: Task, *, module: bool) -> Session:
    """Count a failed verification of a component or of the module, and add the task that takes up its findings."""
    session = add_task(session, component_id, task)
    component = session.tree.component(component_id)
    assert component is not None
    session = with_tree(session, session.tree.with_component(replace(component, broken_down=True)))
    known = session.limits
    limits = (
        replace(known, module_failures=known.module_failures + 1)
        if module
        else replace(known, boundary_failures=known.boundary_failures + 1)
    )
    return _limits(session, limits)


def reopen_tasks(session: Session, task_ids: Collection[str]) -> Session:
    """Open complete tasks again whose commits are gone."""
    return with_tree(session, reopened(session.tree, task_ids))


# Guards, confirmations and questions


def confirm(session: Session, reason: Reason) -> Session:
    """Record a confirmed reason."""
    confirmed = tuple(dict.fromkeys((*session.limits.confirmed, reason)))
    return _limits(session, replace(session.limits, confirmed=confirmed))


def confirm_pause(session: Session, note: str = "") -> Session:
    """End the pause that a person confirms, and record the confirmation.

    Raises:
        LopenError: the session does not wait for a confirmation.
    """
    pause = session.pause
    session = clear_pause(session)
    if isinstance(pause, Confirmation):
        if isinstance(pause.reason, FailuresInRow):
            session = _count_anew(session, pause.reason.subject)
        elif not isinstance(pause.reason, BudgetThreshold):  # the budget's own record holds that
            session = confirm(session, pause.reason)
        if isinstance(pause.reason, UndecidedVerdict):
            told = pause.message.removesuffix(LOOK_AT_IT)  # an order has no place in a record
            line = f"{told} (note: {note})" if note else told
            session = _dialogue(
                session, replace(session.dialogue, accepted=(*session.dialogue.accepted, line))
            )
    elif pause is None or pause.kind != "person":
        raise LopenError(
            f"{session.id} does not wait for a confirmation", hint=f"lopen status {session.module}"
        )
    said = f"A person looked at this ({pause.message}) and says: {note}"
    return add_notes(session, said) if note else session


def _count_anew(session: Session, subject: str) -> Session:
    """Count the attempts at a task, at a planning step or at `BOUNDARIES` from zero again."""
    if task := session.tree.task(subject):
        return with_task(session, replace(task, failures=0))
    if subject == BOUNDARIES:
        return _limits(session, replace(session.limits, boundary_failures=0, module_failures=0))
    return _limits(session, replace(session.limits, step_failures=0))


def ask_person(session: Session, asked: Pause | None) -> Session:
    """Record a question, a confirmation or the gate for a person; an answered one stays until the next run takes it up."""
    return session if asked is None else replace(session, pause=asked)


def count_question(session: Session) -> Session:
    """Count a question of the model."""
    return _dialogue(session, replace(session.dialogue, clarifications=session.dialogue.clarifications + 1))


def answer_question(session: Session, text: str, answer: str) -> Session:
    """Record a person's answer; no question is open any more."""
    answers = (*session.dialogue.answers, (text, answer))
    return _end_question(_dialogue(session, replace(session.dialogue, answers=answers)))


def add_guidance(session: Session, text: str) -> Session:
    """Record what a person told the model unasked, as a decision of theirs."""
    answers = (*session.dialogue.answers, (GUIDANCE, text))
    return _dialogue(session, replace(session.dialogue, answers=answers))


def assume(session: Session, line: str, *, task: str = "") -> Session:
    """Record an assumption; no question is open any more. Those of a `task` replace what it assumed before."""
    others = (a for a in session.dialogue.assumptions if not task or not a.startswith(f"{task}: "))
    assumptions = (*others, f"{task}: {line}" if task else line)
    return _end_question(_dialogue(session, replace(session.dialogue, assumptions=assumptions)))


def _end_question(session: Session) -> Session:
    return clear_pause(session) if isinstance(session.pause, Question) else session


def add_notes(session: Session, *notes: str) -> Session:
    """Add notes that the model is shown once."""
    return _dialogue(session, replace(session.dialogue, notes=(*session.dialogue.notes, *notes)))


def add_corrections(session: Session, corrections: Sequence[str]) -> Session:
    """Add corrections for the model's next prompt, each once."""
    kept = tuple(dict.fromkeys((*session.dialogue.corrections, *corrections)))
    return _dialogue(session, replace(session.dialogue, corrections=kept))


# The repository


def intend_commit(session: Session, intent: CommitIntent | None) -> Session:
    """Record a commit before it is made; None: it is not made."""
    return replace(session, intents=replace(session.intents, commit=intent))


def intend_revert(session: Session, intent: RevertIntent | None) -> Session:
    """Record a revert before it is made; None: it is not made."""
    return replace(session, intents=replace(session.intents, revert=intent))


def record_revert(
    session: Session, removed: Collection[str], restored: Mapping[str, str], note: str
) -> Session:
    """Open the tasks whose commits a revert removed, complete those whose commits it restored (task → commit)."""
    tree = completed_again(reopened(session.tree, removed), restored)
    session = intend_revert(intend_commit(with_tree(session, tree), None), None)
    return add_notes(replace(session, status="paused") if session.finished and removed else session, note)


def record_verified(session: Session, component_ids: Collection[str], *, complete: bool) -> Session:
    """Record that the restored work is verified already, where it is all there: these components, with `complete` the
    module.
    """
    tree = session.tree
    for component in tree.components:
        if component.id in component_ids and all(t.state is State.COMPLETE for t in component.tasks):
            tree = tree.with_component(replace(component, verified=True))
    complete = complete and all(component.verified for component in tree.components)
    return replace(with_tree(session, tree), status="complete" if complete else session.status)
