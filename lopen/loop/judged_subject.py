"""What a boundary's subject was to do: its base tree, description, sections and criteria."""

from __future__ import annotations

from collections.abc import Sequence

from lopen.documents.sections import normalise_name
from lopen.documents.spec import OPTIONAL, OVERVIEW, REQUIRED, Specification
from lopen.oracle.verdict import Scope
from lopen.prompts.prompt import named, outermost
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, Task, TaskTree

Described = tuple[str, str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]


def described(session: Session, spec: Specification, scope: Scope, subject: str, present: str) -> Described:
    """Return base tree (the `present` one where no work began), description, sections and criteria of a subject."""
    tree = session.tree
    if scope == "module":
        overview = spec.outline.get(OVERVIEW)
        about = ((overview.address, spec.outline.full_text(overview)),) if overview is not None else ()
        return (
            _first_base(tree.components) or present,
            "\n".join([f"Module {subject}:", *map(_component_text, tree.components)]),
            (*about, *_sections(spec, _all_sections(tree))),
            _criteria(spec),
        )
    if scope == "component":
        component = tree.component(subject)
        assert component is not None
        return (
            component.base or present,
            _component_text(component),
            _sections(spec, component.spec_sections, _all_sections(tree)),
            _criteria(spec, component.criteria),
        )
    task, owner = tree.task(subject), tree.owner(subject)
    assert task is not None
    assert owner is not None
    return (
        task.base or present,
        _task_text(task, owner),
        _sections(spec, task.spec_sections, owner.spec_sections, _all_sections(tree)),
        _criteria(spec, owner.criteria_of(task)),
    )


def _component_text(component: Component) -> str:
    """The component, with its task where it has one alone: no narrower verdict tells of that."""
    text = f"Component {component.name}: {component.description}"
    return f"{text}\n{_task_text(component.tasks[0], component)}" if len(component.tasks) == 1 else text


def _task_text(task: Task, owner: Component) -> str:
    why = (
        "It was added after planning; its description says why."
        if task.added
        else f"It was planned as a part of the component: {owner.description}"
    )
    lines = [f"Task {task.name} (one of {len(owner.tasks)} of component {owner.name}): {task.description}"]
    lines += [f"- {s.name}" for s in task.subtasks]
    return "\n".join([*lines, f"Why the task exists: {why}"])


def _first_base(components: tuple[Component, ...]) -> str | None:
    return next((c.base for c in components if c.base), None)


def _all_sections(tree: TaskTree) -> tuple[str, ...]:
    return tuple(s for c in tree.components for s in c.spec_sections)


def _sections(spec: Specification, *choices: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The first of the choices that names a section there is; else all of the domain: headings may be renamed."""
    found = next((there for names in choices if (there := outermost(spec, named(spec, names)))), None)
    if found is None:
        structural = {normalise_name(title) for title in (*REQUIRED, *OPTIONAL)}
        found = [
            s for s in spec.outline.sections if s.level == 2 and normalise_name(s.title) not in structural
        ]
    return tuple((s.address, spec.outline.full_text(s)) for s in found)


def _criteria(spec: Specification, ids: tuple[str, ...] | None = None) -> tuple[tuple[str, str], ...]:
    return tuple((c.id, c.text) for c in spec.criteria if ids is None or c.id in ids)
