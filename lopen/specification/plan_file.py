"""`plan.md`: the plan with checkboxes, for people.

Names and texts come from a model, so they are escaped and put on one line. None can act as a comment, a heading or a
terminal escape.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, State, Task, TaskTree, progress

_ACTIVE = re.compile(r"([\\`*_\[\]<&~|])")
_LEADING = re.compile(r"^(?=[#+>=-])|^(\d+)(?=[.)])")
_JOINERS = "\u200c\u200d"  # parts of words and emoji
_LABELS = {
    State.PENDING: "pending",
    State.IN_PROGRESS: "in progress",
    State.COMPLETE: "complete",
    State.FAILED: "failed",
}


def render_plan(module: str, session: Session) -> str:
    """Return the plan of the session's module as markdown."""
    lines = [
        f"# Plan: {_escape(module)}",
        "",
        "Written by lopen after every change; edits here are overwritten.",
        "",
        *_summary(session),
        *_listing("Dependencies", _dependencies(session)),
    ]
    for component in session.tree.components:
        lines += _component(session.tree, component)
    lines += _listing("Criteria", _criteria(session.tree))
    lines += _listing("Decisions", (f"- {_escape(q)} {_escape(a)}" for q, a in session.dialogue.answers))
    lines += _listing("Assumptions", (f"- {_escape(a)}" for a in session.dialogue.assumptions))
    lines += _listing("Accepted by a person", (f"- {_escape(a)}" for a in session.dialogue.accepted))
    return "\n".join(lines).rstrip("\n") + "\n"


def _summary(session: Session) -> Iterator[str]:
    done = progress(session.tree)
    yield f"- Session: {_escape(session.id)} ({session.status})"
    yield f"- Step: {session.step.value}"
    yield f"- Components: {done.components_done} of {done.components} complete"
    yield f"- Tasks: {done.tasks_done} of {done.tasks} complete"
    yield ""


def _listing(title: str, items: Iterator[str]) -> list[str]:
    found = list(items)
    return [f"## {title}", "", *found, ""] if found else []


def _dependencies(session: Session) -> Iterator[str]:
    for d in session.plan.dependencies or ():
        there = "available" if d.available else "missing"
        yield f"- {_strong(d.name)} ({d.kind}, {there}): {_escape(d.reason)}"


def _criteria(tree: TaskTree) -> Iterator[str]:
    covering: dict[str, list[Component]] = {}
    for component in tree.components:
        for criterion in component.criteria:
            covering.setdefault(criterion, []).append(component)
    for criterion, components in covering.items():
        mark = "x" if all(c.state is State.COMPLETE for c in components) else " "
        yield f"- [{mark}] {_escape(criterion)}: {', '.join(_escape(c.name) for c in components)}"


def _component(tree: TaskTree, component: Component) -> Iterator[str]:
    yield f"## {_escape(component.name)} ({_code(component.id)})"
    yield ""
    if component.description:
        yield from (_escape(component.description), "")
    yield f"- State: {_LABELS[component.state]}{', verified' if component.verified else ''}"
    yield f"- Found in the code: {component.found}"
    names = {c.id: c.name for c in tree.components}
    yield from _facts("Depends on", (names.get(d, d) for d in component.depends_on))
    yield from _facts("Criteria", component.criteria)
    yield from _facts("Specification", component.spec_sections)
    yield from _facts("Evidence", component.evidence)
    yield ""
    for task in component.tasks:
        yield from _task(task)
    if component.tasks:
        yield ""


def _facts(label: str, values: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    shown = ", ".join(_escape(v) for v in values)
    if shown:
        yield f"- {label}: {shown}"


def _task(task: Task) -> Iterator[str]:
    mark = "x" if task.state is State.COMPLETE else " "
    ending = "" if task.state in (State.PENDING, State.COMPLETE) else f": {_LABELS[task.state]}"
    if task.given_up:
        ending = f": given up, {_escape(task.given_up)}"
    yield f"- [{mark}] {_strong(task.name)} ({_code(task.id)}){ending}"
    for subtask in task.subtasks:
        yield f"  - [{'x' if subtask.done else ' '}] {_escape(subtask.name)}"


def _escape(text: str) -> str:
    """Put `text` on one line and escape every character that markdown, HTML or a terminal would interpret."""
    line = _one_line(text)
    return _LEADING.sub(lambda m: f"{m[1] or ''}\\", _ACTIVE.sub(r"\\\1", line))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if line.isascii() and line.isprintable() else "".join(map(_printable, line))


def _printable(character: str) -> str:
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in _JOINERS
    return "\ufffd" if hidden else character


def _strong(text: str) -> str:
    return f"**{_escape(text)}**"


def _code(text: str) -> str:
    """Return `text` as a code span, with apostrophes for backticks, which a code span cannot escape."""
    return f"`{_one_line(text).replace('`', chr(39))}`"
