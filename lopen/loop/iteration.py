"""The parts of an iteration: looking, what needs no model, beginning, and setting the table for a conversation."""

from __future__ import annotations

from dataclasses import replace

from lopen.base.errors import LopenError
from lopen.base.events import IterationStarted, TaskChanged
from lopen.documents.source import NoSource
from lopen.documents.spec import Specification
from lopen.guardrails.repeated_failures import escalated
from lopen.llm.messages import Request
from lopen.llm.request_body import text_block
from lopen.loop.approval_gate import at_gate
from lopen.loop.boundaries import close_component, close_module, verify_done
from lopen.loop.context import Ports
from lopen.loop.conversation import Conversation
from lopen.loop.oracle_calls import answer
from lopen.loop.project_context import surroundings
from lopen.loop.reconcile import observe
from lopen.loop.research import research
from lopen.prompts.prompt import build
from lopen.tools.running import ToolRunner
from lopen.tools.workbench import Workbench
from lopen.workflow.decide import entered
from lopen.workflow.pauses import gate_pause, iterations_pause, stuck_pause
from lopen.workflow.session import Pause, Session
from lopen.workflow.steps import Step, Trigger
from lopen.workflow.task_tree import Component, State, next_task, selectable


def look(ports: Ports) -> Pause | None:
    """Bring the session in line with what is true now; a pause where it may not go on."""
    ports.verifier.touch()
    for paper in ports.place.copy_documents(ports.journal.session.module):
        ports.verifier.own_paper(paper)
    session, climbs = escalated(
        ports.journal.session, ports.settings.workflow.failure_threshold, ports.clock.now()
    )
    if climbs:
        ports.journal.save(session, *climbs)
    if session.approval is None:
        return None
    try:
        spec = ports.load_spec(session.module)
    except LopenError as error:
        return gate_pause(session.module, f"the specification cannot be read: {error.message}")
    ports.specifications.keep_ids(spec)
    seen = observe(session, spec, ports.store.approval(session.module), ports.repository)
    if seen.session is not session or seen.events:
        ports.journal.save(seen.session, *seen.events)
    if seen.session.approval is not None:
        ports.take_commands(seen.session.approval.commands)
    return seen.pause


def advance_alone(ports: Ports) -> Pause | bool:
    """Do what the step needs without a model: True if something moved, False if the model's turn has come."""
    session = ports.journal.session
    match session.step:
        case Step.DRAFT_SPECIFICATION:
            return _gate(ports)
        case Step.SELECT_NEXT_COMPONENT:
            return _select(ports)
        case Step.ITERATE_THROUGH_TASKS:
            return _close_component(ports)
        case Step.REPEAT:
            decision = entered(replace(session, selected=None), Trigger.COMPONENTS_REMAIN)
            ports.journal.save(decision.session, *decision.events)
            return True
        case _:
            return False


def _gate(ports: Ports) -> Pause | bool:
    spec = readable_spec(ports)
    if drafts(ports, spec):
        return False
    return at_gate(ports, fit_spec(ports, spec)) or True


def drafts(ports: Ports, spec: Specification | None) -> bool:
    """Step 1 has the model's turn: it was asked for, or no specification is fit and a person said what to write."""
    unfit = spec is None or bool(spec.problems)
    return not ports.drafted and (ports.draft or (unfit and bool(ports.journal.session.request)))


def fit_spec(ports: Ports, spec: Specification | None) -> Specification:
    """The specification, if it is fit to be approved; else what is wrong with it is raised."""
    module = ports.journal.session.module
    try:
        spec = spec or ports.load_spec(module)  # raises what is wrong, with its hint
    except NoSource as error:
        if not ports.drafted:
            raise
        hint = f"say more of what you want: lopen spec {module} -p TEXT; or write the file; lopen log {module} tells"
        raise LopenError(f"the model drafted nothing: {error.message}", hint=hint) from error
    if spec.problems:
        more = f" (and {len(spec.problems) - 1} more)" if len(spec.problems) > 1 else ""
        raise LopenError(f"{spec.problems[0]}{more}", hint=f"mend the specification: lopen check {module}")
    return spec


def readable_spec(ports: Ports) -> Specification | None:
    """The module's specification, or None where there is none that can be read."""
    try:
        return ports.load_spec(ports.journal.session.module)
    except LopenError:
        return None


def _select(ports: Ports) -> Pause | bool:
    """Verify what was recorded as done; close the module; or take up a component that is broken down already."""
    bench = bench_for(ports)
    verify_done(bench, ports.jury)
    if bench.pause is not None:
        return bench.pause
    tree = ports.journal.session.tree
    left = [c for c in tree.components if c.state is not State.COMPLETE]
    if not left:
        return bench.pause or close_module(bench, ports.jury) or True
    choices = [c for c in selectable(tree) if not given_up(c)]
    if not choices:
        return stuck_pause(ports.journal.session, left)
    waiting = next((c for c in choices if c.open_tasks or c.broken_down), None)
    if waiting is None:
        return False
    session = replace(ports.journal.session, selected=waiting.id)
    selected = entered(session, Trigger.COMPONENT_SELECTED)
    broken = entered(selected.session, Trigger.TASKS_BROKEN_DOWN)
    ports.journal.save(broken.session, *selected.events, *broken.events)
    return True


def given_up(component: Component) -> bool:
    return not component.open_tasks and any(t.given_up for t in component.tasks)


def _close_component(ports: Ports) -> Pause | bool:
    session = ports.journal.session
    component = session.tree.component(session.selected or "")
    assert component is not None
    if component.open_tasks:
        return False
    if given_up(component):
        # What a person gave up leaves its component open; the others go on.
        ports.journal.change(selected=None)
        return True
    bench = bench_for(ports)
    close_component(bench, ports.jury, component)
    return bench.pause or True


def begin(ports: Ports, corrections: tuple[str, ...]) -> Session | Pause:
    """Count the iteration, choose the task, and save: from here a model is paid for."""
    session = ports.journal.session
    if session.iterations >= session.iterations_granted:
        return iterations_pause(session)
    session = replace(
        session,
        iterations=session.iterations + 1,
        corrections=tuple(dict.fromkeys((*session.corrections, *corrections))),
    )
    told: list[IterationStarted | TaskChanged] = []
    component = session.tree.component(session.selected or "")
    if session.step is Step.ITERATE_THROUGH_TASKS and component is not None:
        task = next_task(component)
        assert task is not None
        base = task.base or ports.committed_tree()
        if task.state is not State.IN_PROGRESS:
            task = task.to(State.IN_PROGRESS)
            told.append(TaskChanged(task.id, task.name, component.name, task.state.value))
        tree = session.tree.with_component(replace(component, base=component.base or base))
        session = replace(session, tree=tree.with_task(replace(task, base=base)))
        ports.meter.open(
            session.id, session.module, task.id, task.type, "builder", task_description=task.name
        )
    else:  # the last task is not this step's
        ports.meter.open(session.id, session.module, agent=ports.agent_for(session.step))
    model = ports.model_for(session.step)
    task_now = session.task
    ports.watch.begin_iteration(task_now.id if task_now else session.step.value)
    told.append(
        IterationStarted(
            session.iterations,
            session.step.value,
            model,
            component.name if component else "",
            task_now.id if task_now else "",
            task_now.name if task_now else "",
        )
    )
    return ports.journal.save(session, *told)


def bench_for(ports: Ports) -> Workbench:
    """A workbench for one iteration."""
    return Workbench(
        root=ports.root,
        settings=ports.settings,
        journal=ports.journal,
        clock=ports.clock,
        workspace=ports.workspace,
        commands=ports.commands,
        verifier=ports.verifier,
        person=ports.person,
        write_paper=ports.place.write_document,
        load_spec=ports.load_spec,
        judge=lambda bench, scope, subject: answer(bench, ports.jury, scope, subject),
        complete=ports.committer.complete,
        verify_done=lambda bench: verify_done(bench, ports.jury),
        research=lambda bench, topic, question: research(ports, bench, topic, question),
        new_task_id=ports.new_task_id,
    )


def conversation_for(ports: Ports, bench: Workbench) -> Conversation:
    """A conversation for the session's step, with fresh context."""
    session = ports.journal.session
    spec = readable_spec(ports)
    prompt = build(
        session,
        spec,
        surroundings(ports),
        context_tokens=ports.settings.model.context_tokens,
        templates=ports.settings.workflow.templates,
        request=session.request or ports.request,
    )
    if session.step is Step.DRAFT_SPECIFICATION:
        ports.drafted = True
    request = Request(
        model=ports.model_for(session.step),
        system=prompt.system,
        messages=(),
        tools=tuple(t.spec for t in ports.registry.offered(session.step)),
        max_tokens=ports.settings.model.max_tokens,
    )
    runner = ToolRunner(bench, ports.registry, ports.audit, ports.watch, ports.clock, session.iterations)
    opening = {"role": "user", "content": [text_block(prompt.opening)]}
    return Conversation(
        bench, ports.asker, ports.registry, runner, request, ports.agent_for(session.step), [opening]
    )
