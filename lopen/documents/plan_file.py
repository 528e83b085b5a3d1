"""`plan.md`: the plan with checkboxes for people, from which the tree can be rebuilt if the database is lost.

The markdown is drawn for reading; each component carries itself whole in a comment behind its tasks
(`lopen.documents.plan_data`), and that alone is read back. Names and texts come from a model: they are
escaped into inert, single-line text, so that none can pass for a comment, a heading or a terminal escape.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from lopen.documents.plan_data import component_comment, head_comment, read_tree
from lopen.tasks.tree import Component, State, Task, Tree, progress
from lopen.workflow.session import Session

_ACTIVE = re.compile(r"([\\`*_\[\]<&~|])")
_LEADING = re.compile(r"^(?=[#+>=-])|^(\d+)(?=[.)])")
_JOINERS = "\u200c\u200d"  # parts of words and emoji
_WORDS = {
    State.PENDING: "pending",
    State.IN_PROGRESS: "in progress",
    State.COMPLETE: "complete",
    State.FAILED: "failed",
}


def render(module: str, session: Session) -> str:
    """The plan of the session's module, as markdown."""
    lines = [
        f"# Plan: {_inert(module)}",
        "",
        head_comment(session.tree),
        "",
        "Written by lopen after every change; edits here are overwritten.",
        "",
        *_summary(session),
        *_listing("Dependencies", _dependencies(session)),
    ]
    for component in session.tree.components:
        lines += _component(session.tree, component)
    lines += _listing("Criteria", _criteria(session.tree))
    lines += _listing("Assumptions", (f"- {_inert(a)}" for a in session.assumptions))
    return "\n".join(lines).rstrip("\n") + "\n"


def parse(text: str) -> Tree | None:
    """The tree of a rendered plan; None where `text` is none, is cut short or was changed past reading."""
    return read_tree(text.replace("\r\n", "\n"))


def _summary(session: Session) -> Iterator[str]:
    done = progress(session.tree)
    yield f"- Session: {_inert(session.id)} ({session.status})"
    yield f"- Step: {session.step.value}"
    yield f"- Components: {done.components_done} of {done.components} complete"
    yield f"- Tasks: {done.tasks_done} of {done.tasks} complete"
    yield ""


def _listing(title: str, items: Iterator[str]) -> list[str]:
    found = list(items)
    return [f"## {title}", "", *found, ""] if found else []


def _dependencies(session: Session) -> Iterator[str]:
    for d in session.dependencies or ():
        there = "available" if d.available else "missing"
        yield f"- {_strong(d.name)} ({d.kind}, {there}): {_inert(d.reason)}"


def _criteria(tree: Tree) -> Iterator[str]:
    covering: dict[str, list[Component]] = {}
    for component in tree.components:
        for criterion in component.criteria:
            covering.setdefault(criterion, []).append(component)
    for criterion, components in covering.items():
        mark = "x" if all(c.state is State.COMPLETE for c in components) else " "
        yield f"- [{mark}] {_inert(criterion)}: {', '.join(_inert(c.name) for c in components)}"


def _component(tree: Tree, component: Component) -> Iterator[str]:
    yield f"## {_inert(component.name)} ({_code(component.id)})"
    yield ""
    if component.description:
        yield from (_inert(component.description), "")
    yield f"- State: {_WORDS[component.state]}{', verified' if component.verified else ''}"
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
    yield component_comment(component)
    yield ""


def _facts(label: str, values: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    shown = ", ".join(_inert(v) for v in values)
    if shown:
        yield f"- {label}: {shown}"


def _task(task: Task) -> Iterator[str]:
    mark = "x" if task.state is State.COMPLETE else " "
    ending = "" if task.state in (State.PENDING, State.COMPLETE) else f": {_WORDS[task.state]}"
    if task.given_up:
        ending = f": given up, {_inert(task.given_up)}"
    yield f"- [{mark}] {_strong(task.name)} ({_code(task.id)}){ending}"
    for subtask in task.subtasks:
        yield f"  - [{'x' if subtask.done else ' '}] {_inert(subtask.name)}"


def _inert(text: str) -> str:
    """`text` on one line, with every character that markdown, HTML or a terminal would act upon made plain."""
    visible = _shown(text)
    return _LEADING.sub(lambda m: f"{m[1] or ''}\\", _ACTIVE.sub(r"\\\1", visible))


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if line.isascii() and line.isprintable() else "".join(map(_visible, line))


def _visible(character: str) -> str:
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in _JOINERS
    return "\ufffd" if hidden else character


def _strong(text: str) -> str:
    return f"**{_inert(text)}**"


def _code(text: str) -> str:
    """`text` as a code span; a backtick cannot be escaped in one and becomes an apostrophe."""
    return f"`{_shown(text).replace('`', chr(39))}`"
