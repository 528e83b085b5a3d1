"""Tools of steps 2 to 5: each records a step's result and, in the same transaction, moves the session on.

Step 1 may record them too, for the specification that it wrote: the session stays before the gate then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from lopen.core.events import Event, PlanRecorded
from lopen.tools import calls
from lopen.tools.calls import ComponentInput, TaskInput, ToolResult, done, failed
from lopen.tools.workbench import Workbench
from lopen.workflow import changes
from lopen.workflow.next_step import Trigger, assess, due_step, enter_step
from lopen.workflow.session import Dependency, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Subtask, Task, TaskTree, find_cycle, selectable


def _advance(bench: Workbench, session: Session, trigger: Trigger, told: Event, **fields: Any) -> ToolResult:
    """Save `session` one trigger on; then skip what assessment finds done already (step 5 with open tasks).

    Returns the tool's result with `fields` and the step; the conversation ends where building begins.
    """
    events: list[Event] = [told]
    if session.step is not Step.DRAFT_SPECIFICATION:
        decision = enter_step(session, trigger)
        session, events = decision.session, [*events, *decision.events]
        if session.step is Step.BREAK_INTO_TASKS and assess(session) is Step.ITERATE_THROUGH_TASKS:
            decision = enter_step(session, Trigger.TASKS_BROKEN_DOWN)
            session, events = decision.session, [*events, *decision.events]
    bench.journal.save(session, *events)
    step = due_step(session)
    found = {c.found for c in session.tree.components}
    # where all is done already, lopen's own verification comes next
    ended = step is Step.ITERATE_THROUGH_TASKS or (step is Step.SELECT_NEXT_COMPONENT and found == {"done"})
    return replace(done(**fields, step=step.value), recorded=ended)


def record_dependencies(bench: Workbench, wanted: calls.RecordDependencies) -> ToolResult:
    """Step 2's result: what the module needs. May be empty."""
    found = tuple(Dependency(d.name, d.kind, d.reason, d.available) for d in wanted.dependencies)
    session = changes.record_dependencies(bench.session, found)
    told = PlanRecorded("dependencies", tuple(d.name for d in found))
    missing = [d.name for d in found if not d.available]
    extra: dict[str, Any] = {"not_available": missing} if missing else {}
    return _advance(bench, session, Trigger.DEPENDENCIES_DETERMINED, told, **extra)


def record_components(bench: Workbench, wanted: calls.RecordComponents) -> ToolResult:
    """Step 3's result: the whole list of components. Every acceptance criterion is covered by one."""
    spec = bench.project.load_spec(bench.session.module)
    criteria = {c.id: c.text for c in spec.criteria}
    named = {s for c in wanted.components for s in c.spec_sections}
    known_sections = [s for s in named if spec.outline.get(s) is not None]
    problems = component_problems(wanted.components, tuple(criteria), known_sections)
    if problems:
        return failed("; ".join(problems), "fix the list and record all of it again")
    tree = merged(bench.session, wanted.components, criteria)
    session = changes.record_components(bench.session, tree, criteria)
    told = PlanRecorded("components", tuple(c.name for c in tree.components))
    recorded = [{"id": c.id, "name": c.name} for c in tree.components]
    return _advance(bench, session, Trigger.COMPONENTS_IDENTIFIED, told, components=recorded)


def select_component(bench: Workbench, wanted: calls.SelectComponent) -> ToolResult:
    """Step 4's result: the component to build next. Its dependencies must be complete."""
    approved = bench.session.approval is not None  # no command runs before
    pause = bench.steps.verify_done(bench) if approved else None
    return replace(_select_component(bench, wanted), pause=pause)


def _select_component(bench: Workbench, wanted: calls.SelectComponent) -> ToolResult:
    tree = bench.session.tree
    component = tree.component(wanted.name)
    choices = [c for c in selectable(tree) if not c.given_up]
    names = ", ".join(c.name for c in choices)
    if component is None:
        return failed(f"there is no component {wanted.name!r}", f"selectable: {names}")
    if component not in choices:
        state = "given up: a person skipped its tasks" if component.given_up else component.state.value
        waits = [d for d in component.depends_on if (c := tree.component(d)) and c.state.value != "complete"]
        why = f"it waits for {', '.join(waits)}" if waits else f"it is {state}"
        return failed(f"{component.name} cannot be selected: {why}", f"selectable: {names}")
    session = changes.select_component(bench.session, component.id)
    told = PlanRecorded("component", (component.name,))
    return _advance(bench, session, Trigger.COMPONENT_SELECTED, told, component=component.name)


def record_tasks(bench: Workbench, wanted: calls.RecordTasks) -> ToolResult:
    """Step 5's result: the selected component's tasks, in order."""
    session = bench.session
    component = session.tree.component(wanted.component)
    if component is None or component.id != session.plan.selected:
        chosen = session.tree.component(session.plan.selected or "")
        return failed(
            f"{wanted.component!r} is not the selected component",
            f"the selected component is {chosen.name!r}" if chosen else "",
        )
    if refusal := unfit(wanted.tasks, component, component.tasks):
        return refusal
    tasks = tuple(task_from(bench.new_task_id(), t) for t in wanted.tasks)
    session = changes.record_tasks(session, component.id, tasks)
    told = PlanRecorded("tasks", tuple(t.name for t in tasks))
    recorded = [{"id": t.id, "name": t.name} for t in tasks]
    return _advance(bench, session, Trigger.TASKS_BROKEN_DOWN, told, tasks=recorded)


def unfit(wanted: Sequence[TaskInput], component: Component, beside: Sequence[Task]) -> ToolResult | None:
    """Refuse tasks with a name that another one has, `beside` or among them, or with an unknown criterion."""
    names = [*(t.name.casefold() for t in beside), *(t.name.casefold() for t in wanted)]
    if doubled := next((t.name for t in wanted if names.count(t.name.casefold()) > 1), None):
        return failed(f"two tasks are named {doubled!r}", "give each task a name of its own")
    known = ", ".join(component.criteria)
    problems = [
        f"{t.name}: there is no criterion {i!r} in {component.name} (its criteria: {known})"
        for t in wanted
        for i in t.acceptance_criteria
        if i not in component.criteria
    ]
    return (
        failed("; ".join(problems), "name criteria of the component, or none for all of them")
        if problems
        else None
    )


def task_from(task_id: str, wanted: TaskInput) -> Task:
    """Return the task as the plan keeps it."""
    return Task(
        task_id,
        wanted.name,
        wanted.description,
        type=wanted.type or "implement",
        subtasks=tuple(Subtask(s) for s in wanted.subtasks),
        spec_sections=tuple(wanted.spec_sections),
        files=tuple(dict.fromkeys(PurePosixPath(path).as_posix() for path in wanted.files)),
        criteria=tuple(dict.fromkeys(wanted.acceptance_criteria)),
    )


def component_id(name: str, taken: set[str]) -> str:
    """A short, readable, unique id made from a component's name."""
    stem = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:40] or "component"
    candidate, n = stem, 2
    while candidate in taken:
        candidate, n = f"{stem}-{n}", n + 1
    return candidate


def component_problems(
    wanted: Sequence[ComponentInput], criteria: Sequence[str], sections: Sequence[str]
) -> list[str]:
    """Return the problems of a list of components: names, dependencies, cycles, criteria."""
    problems: list[str] = []
    names = [c.name for c in wanted]
    folded = [n.casefold() for n in names]
    problems += [
        f"two components are named {n!r}" for n in dict.fromkeys(names) if folded.count(n.casefold()) > 1
    ]
    for c in wanted:
        problems += [
            f"{c.name}: depends_on names {d!r}, which is not in the list"
            for d in c.depends_on
            if d.casefold() not in folded
        ]
        problems += [
            f"{c.name}: there is no criterion {i!r} (known: {', '.join(criteria)})"
            for i in c.acceptance_criteria
            if i not in criteria
        ]
        problems += [
            f"{c.name}: the specification has no section {s!r}" for s in c.spec_sections if s not in sections
        ]
    cycle = find_cycle({c.name.casefold(): [d.casefold() for d in c.depends_on] for c in wanted})
    if cycle:
        problems.append(f"the dependencies go in a circle: {' → '.join(cycle)}")
    covered = {i for c in wanted for i in c.acceptance_criteria}
    uncovered = [i for i in criteria if i not in covered]
    if uncovered:
        problems.append(f"no component covers {', '.join(uncovered)}")
    return problems


def merged(session: Session, wanted: Sequence[ComponentInput], criteria: Mapping[str, str]) -> TaskTree:
    """Return the tree of the new list of components; finished work stays finished.

    A component that is no longer named leaves the plan, but its complete tasks stay. A component whose criteria
    changed in number or in words is broken down and verified again.
    """
    old = {c.name.casefold(): c for c in session.tree.components}
    ids = _ids(wanted, old)
    components = [
        _renewed(c, old.get(c.name.casefold()), ids, session.plan.criteria, criteria) for c in wanted
    ]
    left = [c for name, c in old.items() if name not in ids and _complete_tasks(c)]
    there = {*ids.values(), *(c.id for c in left)}
    return TaskTree((*components, *(_finished(c, there, session.plan.criteria, criteria) for c in left)))


def _ids(wanted: Sequence[ComponentInput], old: Mapping[str, Component]) -> dict[str, str]:
    """Folded name → id: the one it had, else a new one."""
    taken = {c.id for c in old.values()}
    ids: dict[str, str] = {}
    for name in (c.name.casefold() for c in wanted):
        ids[name] = old[name].id if name in old else component_id(name, taken)
        taken.add(ids[name])
    return ids


def _renewed(
    wanted: ComponentInput,
    known: Component | None,
    ids: Mapping[str, str],
    before: Mapping[str, str],
    now: Mapping[str, str],
) -> Component:
    """The component as it is wanted now, with the tasks it had. `before` and `now`: criteria, id → text."""
    was = known or Component(ids[wanted.name.casefold()], wanted.name)
    # Words may change under one id; a verification holds for the same texts only.
    same = {before.get(i) for i in was.criteria} == {now[i] for i in wanted.acceptance_criteria}
    return replace(
        was,
        name=wanted.name,
        description=wanted.description,
        depends_on=tuple(dict.fromkeys(ids[d.casefold()] for d in wanted.depends_on)),
        spec_sections=tuple(wanted.spec_sections),
        criteria=tuple(dict.fromkeys(wanted.acceptance_criteria)),
        found=wanted.state,
        evidence=tuple(wanted.evidence),
        verified=was.verified and same,
        broken_down=was.broken_down and same,
    )


def _complete_tasks(component: Component) -> bool:
    return any(t.state is State.COMPLETE for t in component.tasks)


def _finished(
    component: Component, there: set[str], before: Mapping[str, str], now: Mapping[str, str]
) -> Component:
    """Return the rest of a component that left the plan: its complete tasks, for unchanged criteria."""
    return replace(
        component,
        tasks=tuple(t for t in component.tasks if t.state is State.COMPLETE),
        depends_on=tuple(d for d in component.depends_on if d in there),
        criteria=tuple(i for i in component.criteria if i in now and before.get(i) == now[i]),
        broken_down=True,
    )
