"""The session as lines of a prompt: where it stands, its task, its plan, and the decisions that hold. Pure."""

from __future__ import annotations

from lopen.prompts.parts import bullet, indented
from lopen.workflow.assess import met_criteria
from lopen.workflow.session import Session
from lopen.workflow.steps import number, phase_of
from lopen.workflow.task_tree import Component, Task, next_task, progress

DECIDED = "Decisions that hold"
TASKS_BEFORE, TASKS_AFTER = 10, 30  # of a long component's tasks, those around the next one are listed


def decisions(session: Session) -> tuple[str, ...]:
    """A person's answers, and what was assumed where nobody answered."""
    answers = (f"{asked.strip()} The person answered: {given.strip()}" for asked, given in session.answers)
    return tuple(indented(line) for line in (*answers, *session.assumptions))


def decision_lines(session: Session) -> str:
    """The decisions that hold, as a list."""
    return "\n".join(f"- {line}" for line in decisions(session))


def state_lines(session: Session, established: frozenset[str]) -> str:
    """Where the session stands, in a few lines. `established`: the criteria that verdicts found to hold."""
    done, step = progress(session.tree), session.step
    lines = [f"module: {session.module}", f"step: {number(step)} {step.value} ({phase_of(step)})"]
    if session.tree.components:
        met = len((established & session.criteria.keys()) | met_criteria(session))
        lines += [
            f"judged to hold so far: {met} of {len(session.criteria)} acceptance criteria",
            f"complete: {done.components_done} of {done.components} components, {done.tasks_done} of {done.tasks} tasks",
        ]
    return "\n".join(lines)


def task_lines(task: Task) -> str:
    """The task with its id, description and checklist."""
    lines = [f"id: {task.id}", f"name: {task.name}"]
    lines += [f"description: {indented(task.description)}"] if task.description else []
    lines += [f"{n}. [{'x' if s.done else ' '}] {s.name}" for n, s in enumerate(task.subtasks, 1)]
    if task.failures:
        lines.append(f"Failed attempts in a row: {task.failures}. Their reasons, oldest first:")
        lines += map(bullet, task.reasons)
    return "\n".join(line for line in lines if line)


def plan_lines(session: Session) -> str:
    """The plan as an excerpt: components with their state, and of the selected one the tasks around the next.

    Empty where the task in progress is all of it.
    """
    if session.task is not None and sum(1 for _ in session.tree.tasks) == len(session.tree.components) == 1:
        return ""
    lines = []
    for component in session.tree.components:
        lines.append(f"- {component.name} ({component.id}): {component.state.value}")
        if component.id == session.selected:
            lines += _tasks_around(component)
    return "\n".join(lines)


def _tasks_around(component: Component) -> list[str]:
    tasks, current = component.tasks, next_task(component)
    at = tasks.index(current) if current else 0
    first, after = max(0, at - TASKS_BEFORE), at + TASKS_AFTER
    lines = [f"  - {t.id} {t.name}: {t.state.value}" for t in tasks[first:after]]
    before, behind = first, max(0, len(tasks) - after)
    return [
        *([f"  - ({before} earlier tasks)"] if before else []),
        *lines,
        *([f"  - ({behind} later tasks)"] if behind else []),
    ]
