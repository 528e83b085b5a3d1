"""Tools of steps 2 to 5: each records a step's result and, in the same transaction, moves the session on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lopen.events import Event, PlanRecorded
from lopen.tasks.tree import Subtask, Task, selectable
from lopen.tools import inputs
from lopen.tools.components import by_name, component_problems, merged
from lopen.tools.results import Result, done, failed
from lopen.tools.workbench import Workbench
from lopen.workflow.assess import assess, facts_of
from lopen.workflow.decide import entered
from lopen.workflow.session import Dependency, Session
from lopen.workflow.steps import Step, Trigger


def _advance(bench: Workbench, session: Session, trigger: Trigger, *events: Event) -> Step:
    """Save `session` one trigger on; then skip what assessment finds done already (step 5 with open tasks)."""
    decision = entered(session, trigger)
    told = [*events, *decision.events]
    session = decision.session
    if session.step is Step.BREAK_INTO_TASKS and assess(facts_of(session, approved=True)) is not session.step:
        decision = entered(session, Trigger.TASKS_BROKEN_DOWN)
        session, told = decision.session, [*told, *decision.events]
    bench.journal.save(session, *told)
    bench.recorded = session.step is Step.ITERATE_THROUGH_TASKS or _nothing_to_build(session)
    return session.step


def _nothing_to_build(session: Session) -> bool:
    """Everything was recorded as done: lopen's own verification is what comes next."""
    return session.step is Step.SELECT_NEXT_COMPONENT and all(
        c.found == "done" for c in session.tree.components
    )


def record_dependencies(bench: Workbench, wanted: inputs.RecordDependencies) -> Result:
    """Step 2's result."""
    found = tuple(Dependency(d.name, d.kind, d.reason, d.available) for d in wanted.dependencies)
    session = replace(
        bench.session,
        dependencies=found,
        # Components recorded before rest on the old dependencies: step 3 is due again.
        replan=Step.IDENTIFY_COMPONENTS if bench.session.tree.components else None,
    )
    told = PlanRecorded("dependencies", tuple(d.name for d in found))
    step = _advance(bench, session, Trigger.DEPENDENCIES_DETERMINED, told)
    missing = [d.name for d in found if not d.available]
    extra: dict[str, Any] = {"not_available": missing} if missing else {}
    return done(step=step.value, **extra)


def record_components(bench: Workbench, wanted: inputs.RecordComponents) -> Result:
    """Step 3's result; the components and criteria become the original scope."""
    spec = bench.load_spec(bench.session.module)
    criteria = {c.id: c.text for c in spec.criteria}
    named = {s for c in wanted.components for s in c.spec_sections}
    known_sections = [s for s in named if spec.outline.get(s) is not None]
    components = by_name(wanted.components, bench.session.tree)
    problems = component_problems(components, tuple(criteria), known_sections)
    if problems:
        return failed("; ".join(problems), "mend the list and record all of it again")
    tree = merged(bench.session, components, criteria)
    session = replace(
        bench.session,
        tree=tree,
        criteria=criteria,
        original_scope=len(criteria) + len(tree.components),
        replan=None,
        selected=None,
    )
    told = PlanRecorded("components", tuple(c.name for c in tree.components))
    step = _advance(bench, session, Trigger.COMPONENTS_IDENTIFIED, told)
    return done(components=[{"id": c.id, "name": c.name} for c in tree.components], step=step.value)


def select_component(bench: Workbench, wanted: inputs.SelectComponent) -> Result:
    """Step 4's result. What was recorded as done is verified first: others may wait for it."""
    bench.verify_done(bench)
    tree = bench.session.tree
    component = tree.component(wanted.name)
    names = ", ".join(c.name for c in selectable(tree))
    if component is None:
        return failed(f"there is no component {wanted.name!r}", f"selectable: {names}")
    if component not in selectable(tree):
        state = component.state.value
        waits = [d for d in component.depends_on if (c := tree.component(d)) and c.state.value != "complete"]
        why = f"it waits for {', '.join(waits)}" if waits else f"it is {state}"
        return failed(f"{component.name} cannot be selected: {why}", f"selectable: {names}")
    session = replace(bench.session, selected=component.id)
    told = PlanRecorded("component", (component.name,))
    step = _advance(bench, session, Trigger.COMPONENT_SELECTED, told)
    return done(component=component.name, step=step.value)


def record_tasks(bench: Workbench, wanted: inputs.RecordTasks) -> Result:
    """Step 5's result: tasks go behind those the component has."""
    session = bench.session
    component = session.tree.component(wanted.component)
    if component is None or component.id != session.selected:
        chosen = session.tree.component(session.selected or "")
        return failed(
            f"{wanted.component!r} is not the selected component",
            f"the selected component is {chosen.name!r}" if chosen else "",
        )
    names = [n.casefold() for n in (*(t.name for t in component.tasks), *(t.name for t in wanted.tasks))]
    doubled = next((n for n in (t.name for t in wanted.tasks) if names.count(n.casefold()) > 1), None)
    if doubled:
        return failed(f"two tasks are named {doubled!r}", "give each task a name of its own")
    tasks = tuple(
        Task(
            bench.new_task_id(),
            t.name,
            t.description,
            type=t.type or "implement",
            subtasks=tuple(Subtask(s) for s in t.subtasks),
            spec_sections=tuple(t.spec_sections),
        )
        for t in wanted.tasks
    )
    tree = session.tree.with_component(
        replace(component, tasks=(*component.tasks, *tasks), broken_down=True, verified=False)
    )
    session = replace(session, tree=tree, planned_tasks=session.planned_tasks + len(tasks))
    told = PlanRecorded("tasks", tuple(t.name for t in tasks))
    step = _advance(bench, session, Trigger.TASKS_BROKEN_DOWN, told)
    return done(tasks=[{"id": t.id, "name": t.name} for t in tasks], step=step.value)
