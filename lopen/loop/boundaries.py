"""Boundaries: where work goes on only with a person's approval, or with lopen's own verification.

The gate between step 1 and step 2 opens for a person's approval of exactly this specification. Passing it makes the
module's branch (`lopen.files.module_branch`) and its first commit, which carries the specification and its research.
A component or the module that is about to count as done is verified without a model turn. Its findings become one new task; after three such failures, or more added than
planned tasks, the run asks a person (docs/reference/workflow.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lopen.core.events import ComponentComplete, Event, GuardrailRaised, Notice, SpecApproved, TaskChanged
from lopen.git.refs import require_commit
from lopen.guardrails.completion import QUALITY
from lopen.guardrails.guard import one_line
from lopen.judge.judging import BoundaryVerdict, Judge
from lopen.judge.verdict import Scope
from lopen.loop.context import NoApprover, SessionContext
from lopen.loop.facts import assessed
from lopen.specification.drift import spec_hash
from lopen.specification.spec import Specification
from lopen.tools.workbench import Workbench
from lopen.verification.findings import Finding
from lopen.verification.runners import shown_output
from lopen.workflow import changes
from lopen.workflow.next_step import Trigger, enter_step, review, scope_lost, scope_of
from lopen.workflow.pauses import BOUNDARIES, Pause, gate, not_accepted
from lopen.workflow.session import Approval
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree


def close_component(bench: Workbench, judge: Judge, component: Component) -> Pause | None:
    """Verify a component whose tasks are all complete: it is complete and step 7 comes, or a task is added.

    Returns the pause where a person is needed.
    """
    judged = judge.verdict_on("component", component.id)
    if judged.pause is not None:
        return judged.pause
    if not judged.passed:
        return _add_task(bench, judged, "component", component)
    told = ComponentComplete(component.id, component.name)
    session = changes.complete_component(bench.session, component.id)
    if session.step is Step.ITERATE_THROUGH_TASKS:
        decision = enter_step(session, Trigger.COMPONENT_COMPLETE)
        bench.journal.save(decision.session, told, *decision.events)
    else:
        bench.journal.save(session, told)
    return None


def verify_done(bench: Workbench, judge: Judge) -> Pause | None:
    """Verify components that step 3 recorded as done, in order of their dependencies; each once.

    Returns the pause where a person is needed.
    """
    for _ in bench.session.tree.components:
        due = next(to_verify(bench.session.tree), None)
        if due is None:
            return None
        if pause := close_component(bench, judge, due):
            return pause
    return None


def to_verify(tree: TaskTree) -> Iterator[Component]:
    """Components that step 3 recorded as done, whose turn has come to be verified."""
    complete = {c.id for c in tree.components if c.state is State.COMPLETE}
    for component in tree.components:
        recorded = component.found == "done" and not component.verified and not component.tasks
        if recorded and set(component.depends_on) <= complete:
            yield component


def close_module(bench: Workbench, judge: Judge) -> Pause | None:
    """Verify the module once no component is left: the session is complete, or a task is added."""
    judged = judge.verdict_on("module", bench.session.module)
    if judged.pause is not None:
        return judged.pause
    if not judged.passed:
        return _add_task(bench, judged, "module", None)
    scope = scope_of(bench.session)
    if not scope.reached:
        return scope_lost(bench.session, scope)
    decision = enter_step(bench.session, Trigger.MODULE_VERIFIED)
    bench.journal.save(changes.complete_module(decision.session), *decision.events)
    return None


def _add_task(
    bench: Workbench, judged: BoundaryVerdict, scope: Scope, component: Component | None
) -> Pause | None:
    """Turn the findings into one task, and ask a person where verifications keep failing."""
    session, found = bench.session, judged.verdict.findings
    target = component or _covering(session.tree, found)
    named = tuple(dict.fromkeys(f.criterion for f in found if f.criterion in target.criteria))
    judged_scope = judged.verdict.scope  # the widest that this one completes
    task = Task(
        bench.new_task_id(),
        _name(target, judged_scope),
        _description(judged, judged_scope),
        criteria=named,
        added=True,
    )
    session = changes.fail_boundary(session, target.id, task, module=scope == "module")
    attempts = max(session.limits.boundary_failures, session.limits.module_failures)
    pause = review(session)
    if attempts >= bench.settings.workflow.failure_threshold:
        what = f"{scope} {judged.verdict.subject}"
        pause = not_accepted(session.id, BOUNDARIES, what, attempts, one_line(judged.verdict.summary))
    session = changes.ask_person(session, pause)
    told = TaskChanged(task.id, task.name, target.name, State.PENDING.value, judged.verdict.summary[:500])
    raised = GuardrailRaised(
        QUALITY,
        "block",
        f"the {judged_scope}'s verification failed: {one_line(judged.verdict.summary)}",
        f"adds {task.id}, which takes up what it found",
    )
    bench.journal.save(session, told, raised)
    return pause


def _covering(tree: TaskTree, findings: Sequence[Finding]) -> Component:
    """The component that covers the first criterion a finding names; else the last."""
    named = [f.criterion for f in findings if f.criterion]
    return next((c for n in named for c in tree.components if n in c.criteria), tree.components[-1])


def _name(component: Component, scope: Scope) -> str:
    taken = {t.name for t in component.tasks}
    stem = f"Fix what the {scope} verification found"
    names = [stem, *(f"{stem} ({n})" for n in range(2, len(taken) + 3))]
    return next(n for n in names if n not in taken)


def _description(judged: BoundaryVerdict, scope: Scope) -> str:
    lines = [f"The {scope}'s verification failed: {judged.verdict.summary}"]
    lines += [f"- {finding}" for finding in judged.verdict.findings]
    for result in judged.results:
        if not result.passed:
            lines.append(
                f"\n`{result.command}` ended with exit code {result.exit_code}:\n{shown_output(result.output, passed=False)}"
            )
    return "\n".join(lines)


def at_gate(context: SessionContext, spec: Specification) -> Pause | None:
    """Pass the gate if a person opened it for exactly this specification; otherwise wait for them."""
    given, module = valid_approval(context, spec), context.record.journal.session.module
    waits = gate(module, "the specification passes `lopen check` and waits for approval")
    if given is None and not isinstance(context.people.approver, NoApprover):
        context.models.calls.connect()  # a person is not asked in vain
        # first: any shell shows and gives it
        context.record.journal.save(changes.ask_person(context.record.journal.session, waits))
        if context.people.approver.approve(spec):
            given = valid_approval(context, spec)
    if given is None:
        return waits
    pass_gate(context, spec, given)
    return None


def valid_approval(context: SessionContext, spec: Specification) -> Approval | None:
    """The module's newest approval, if it is for this specification as it is now."""
    newest = context.record.store.approval(spec.module)
    return newest if newest and newest.spec_hash == spec_hash(spec.outline) else None


def pass_gate(context: SessionContext, spec: Specification, given: Approval) -> None:
    """Make the branch and its first commit, and enter the step behind it."""
    require_commit(
        context.project.place.person.head(), spec.module
    )  # report first what costs least to correct
    context.models.calls.connect()  # change nothing for a model that cannot be asked
    told: list[Event] = [SpecApproved(given.who, given.note, given.spec_hash)]
    told += context.branch.begin(spec.module)
    take_approval(context, given, *told)


def take_approval(context: SessionContext, given: Approval, *told: Event) -> None:
    """Enter step 2, or behind a recorded plan the step that it leads to; nothing of the repository changes."""
    before = context.record.journal.session
    entered = enter_step(changes.approve(before, given), Trigger.SPEC_APPROVED)
    session, also = assessed(entered.session)
    if before.tree.components and not session.tree.components:
        also.append(
            Notice("info", "the specification was edited after its plan was recorded; it is planned anew")
        )
    context.record.journal.save(session, *told, *entered.events, *also)
    context.take_commands(given.commands)
