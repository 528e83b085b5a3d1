"""The parts of an iteration: look at the facts, advance without a model, begin, set up the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lopen.core.errors import LopenError
from lopen.core.events import IterationStarted, TaskChanged
from lopen.guardrails.pipeline import lasting
from lopen.loop.boundaries import at_gate, close_component, close_module, valid_approval, verify_done
from lopen.loop.context import SessionContext
from lopen.loop.conversation import AskedModel, Conversation, StoredCalls
from lopen.loop.facts import observe
from lopen.loop.project_context import surroundings
from lopen.loop.research import research
from lopen.loop.transcript import Resumed, Transcript, TurnCounts, digest, opening_of
from lopen.models.messages import Json, Request
from lopen.models.prompts.prompt import build
from lopen.models.request_body import text_block
from lopen.specification.modules import MissingSource
from lopen.specification.spec import Specification
from lopen.store.journal import StoredConversation
from lopen.tools.calls import ToolResult
from lopen.tools.running import ToolRunner
from lopen.tools.task_completion import complete_accepted
from lopen.tools.workbench import Workbench
from lopen.workflow import changes
from lopen.workflow.next_step import Trigger, enter_step, stuck
from lopen.workflow.pauses import Pause, gate, iterations_used
from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step
from lopen.workflow.task_tree import State, next_task, selectable

Needed = Pause | Literal["model"] | None
"""The need of a step: a person, or a model; None where the step moved the session on without either."""


def look(context: SessionContext) -> Pause | None:
    """Bring the session in line with the present facts; a pause where it may not go on."""
    context.project.verifier.touch()
    if waits_for := context.branch.sync():
        return waits_for
    for paper in context.project.place.copy_documents(context.record.journal.session.module):
        context.project.verifier.mark_own_file(paper)
    session = context.record.journal.session
    if session.approval is None:
        return None
    try:
        spec = context.project.load_spec(session.module)
    except LopenError as error:
        return gate(session.module, f"the specification cannot be read: {error.message}")
    context.project.specifications.keep_ids(spec)
    seen = observe(session, spec, context.record.store.approval(session.module), context.project.repository)
    if seen.session is not session or seen.events:
        context.record.journal.save(seen.session, *seen.events)
    if seen.session.approval is not None:
        context.take_commands(seen.session.approval.commands)
    return seen.pause


def advance_without_model(context: SessionContext) -> Needed:
    """Do the part of the session's step that needs no model."""
    session = context.record.journal.session
    match session.step:
        case Step.DRAFT_SPECIFICATION:
            spec = readable_spec(context)
            return "model" if drafts(context, spec) else at_gate(context, fit_spec(context, spec))
        case Step.SELECT_NEXT_COMPONENT:
            return _select(context)
        case Step.ITERATE_THROUGH_TASKS:
            return _complete_or_close(context)
        case Step.REPEAT:
            decision = enter_step(changes.select_component(session, None), Trigger.COMPONENTS_REMAIN)
            context.record.journal.save(decision.session, *decision.events)
            return None
        case _:
            return "model"


def drafts(context: SessionContext, spec: Specification | None) -> bool:
    """Step 1 has the model's turn: it was asked for, or no specification is fit and a person said what to write.

    A conversation that was cut off goes on, unless a person approved what it wrote.
    """
    unfit = spec is None or bool(spec.problems)
    if spec is not None and not unfit and valid_approval(context, spec):
        return context.asked.draft and not context.drafted
    return stored_conversation(context) is not None or (
        not context.drafted
        and (context.asked.draft or (unfit and bool(context.record.journal.session.dialogue.request)))
    )


def stored_conversation(context: SessionContext) -> StoredConversation | None:
    """Return the conversation that the run continues; None where a fresh one begins."""
    if context.record.journal.session.limits.iterations == 0:
        return None
    stored = context.record.conversations.load()
    if stored is None or fits(context, stored):
        return stored
    context.record.conversations.clear()
    return None


def fits(context: SessionContext, stored: StoredConversation) -> bool:
    """Return whether the stored conversation is that of the session's present work, with the same model and tools."""
    session, opening = context.record.journal.session, stored.opening
    if opening["iteration"] != session.limits.iterations or any(
        entry.body.get("recorded") for entry in stored.entries if entry.kind == "result"
    ):
        return False
    began = Step(opening["step"])
    planning = began in PLANNING_STEPS and session.step in PLANNING_STEPS
    if not planning and (began is not session.step or opening["task"] != _task_id(session)):
        return False
    tools = tuple(tool.spec for tool in context.registry.offered(session.step))
    return bool(opening["model"] == context.model_for(session.step) and opening["tools"] == digest(tools))


def _task_id(session: Session) -> str:
    return session.task.id if session.task else ""


def fit_spec(context: SessionContext, spec: Specification | None) -> Specification:
    """The specification, if it is fit to be approved; else raise its problems."""
    module = context.record.journal.session.module
    try:
        spec = spec or context.project.load_spec(module)  # raises the problem, with its hint
    except MissingSource as error:
        if not context.drafted:
            raise
        hint = f"say more of what you want: lopen spec {module} -p 'what it should do'; or write the file; lopen log {module} tells"
        raise LopenError(f"the model drafted nothing: {error.message}", hint=hint) from error
    if spec.problems:
        more = f" (and {len(spec.problems) - 1} more)" if len(spec.problems) > 1 else ""
        raise LopenError(f"{spec.problems[0]}{more}", hint=f"fix the specification: lopen check {module}")
    return spec


def readable_spec(context: SessionContext) -> Specification | None:
    """The module's specification, or None where there is none that can be read."""
    try:
        return context.project.load_spec(context.record.journal.session.module)
    except LopenError:
        return None


def _select(context: SessionContext) -> Needed:
    """Verify the components that were recorded as done; close the module; or take up a component that is broken down
    already.
    """
    bench = bench_for(context)
    if pause := verify_done(bench, context.models.judge):
        return pause
    session = context.record.journal.session
    if all(c.state is State.COMPLETE for c in session.tree.components):
        return close_module(bench, context.models.judge)
    if halt := stuck(session):
        return halt
    choices = [c for c in selectable(session.tree) if not c.given_up]
    waiting = next((c for c in choices if c.open_tasks or c.broken_down), None)
    if waiting is None:
        return "model"
    session = changes.select_component(session, waiting.id)
    selected = enter_step(session, Trigger.COMPONENT_SELECTED)
    broken = enter_step(selected.session, Trigger.TASKS_BROKEN_DOWN)
    context.record.journal.save(broken.session, *selected.events, *broken.events)
    return None


def _complete_or_close(context: SessionContext) -> Needed:
    """Complete the task that a person accepted, or close the component if no task is left."""
    session = context.record.journal.session
    component = session.tree.component(session.plan.selected or "")
    assert component is not None
    if component.open_tasks:
        answer = complete_accepted(bench_for(context))
        if answer is None:
            return "model"
        context.record.write_plan()
        return answer.pause
    if component.given_up:
        # Tasks that a person gave up leave their component open; the others go on.
        context.record.journal.save(changes.select_component(session, None))
        return None
    return close_component(bench_for(context), context.models.judge, component)


def begin(context: SessionContext, corrections: tuple[str, ...]) -> Session | Pause:
    """Count the iteration, choose the task, and save: from here a model is paid for."""
    session = context.record.journal.session
    if session.limits.iterations >= session.limits.iterations_granted:
        return iterations_used(session.id, session.limits.iterations)
    kept = dict.fromkeys((*lasting(session.dialogue.corrections), *corrections))
    session = changes.begin_iteration(session, tuple(kept))
    told: list[IterationStarted | TaskChanged] = []
    component = session.tree.component(session.plan.selected or "")
    if session.step is Step.ITERATE_THROUGH_TASKS and component is not None:
        task = next_task(component)
        assert task is not None
        if task.state is not State.IN_PROGRESS:
            told.append(TaskChanged(task.id, task.name, component.name, State.IN_PROGRESS.value))
        session = changes.begin_task(session, task, task.base or context.committed_tree())
    open_budget(context, session)
    model = context.model_for(session.step)
    task_now = session.task
    told.append(
        IterationStarted(
            session.limits.iterations,
            session.step.value,
            model,
            component.name if component else "",
            task_now.id if task_now else "",
            task_now.name if task_now else "",
        )
    )
    return context.record.journal.save(session, *told)


def open_budget(context: SessionContext, session: Session) -> None:
    """Charge later requests to the task in progress; in other steps to no task."""
    meter, task = context.guards.meter, session.task
    if session.step is Step.ITERATE_THROUGH_TASKS and task is not None:
        meter.open(session.id, session.module, task.id, task.type, "builder", task_description=task.name)
    else:
        meter.open(session.id, session.module, agent=context.agent_for(session.step))


@dataclass(frozen=True)
class LoopSteps:
    """The parts of the loop that tools may ask for."""

    context: SessionContext

    def verify_done(self, bench: Workbench) -> Pause | None:
        return verify_done(bench, self.context.models.judge)

    def research(self, bench: Workbench, topic: str, question: str) -> ToolResult:
        return research(self.context, bench, topic, question)


def bench_for(context: SessionContext) -> Workbench:
    """Return a workbench for one iteration."""
    return Workbench(
        settings=context.settings,
        clock=context.clock,
        journal=context.record.journal,
        project=context.project,
        person=context.people.person,
        judge=context.models.judge,
        steps=LoopSteps(context),
        branch=context.branch,
        new_task_id=context.record.new_task_id,
    )


def conversation_for(context: SessionContext, bench: Workbench) -> Conversation:
    """A conversation for the session's step, with fresh context."""
    session = context.record.journal.session
    spec, around = readable_spec(context), surroundings(context)
    context.guards.watch.begin_iteration(
        session.task.id if session.task else session.step.value, around.task_files.whole
    )
    prompt = build(
        session,
        spec,
        around,
        templates=context.settings.workflow.templates,
        request=session.dialogue.request,
    )
    request = Request(
        model=context.model_for(session.step),
        system=prompt.system,
        messages=(),
        tools=tuple(t.spec for t in context.registry.offered(session.step)),
        max_tokens=context.settings.model.max_tokens,
    )
    context.record.conversations.begin(opening_of(request, session, prompt.opening))
    opening = {"role": "user", "content": [text_block(prompt.opening)]}
    return conversation_of(context, bench, request, [opening])


def conversation_of(
    context: SessionContext,
    bench: Workbench,
    request: Request,
    messages: list[Json],
    resumed: Resumed | None = None,
) -> Conversation:
    """The conversation over those messages, with the session's model and tools."""
    session, store = context.record.journal.session, context.record.conversations
    runner = ToolRunner(
        bench,
        context.registry,
        context.record.audit,
        context.guards.watch,
        log=StoredCalls(store, bench),
    )
    return Conversation(
        bench,
        AskedModel(context.models.calls, request, context.agent_for(session.step), context.guards.meter.left),
        runner,
        Transcript(store, messages),
        session.task.id if session.task else session.step.value,
        resumed.counts if resumed else TurnCounts(),
        resumed,
    )
