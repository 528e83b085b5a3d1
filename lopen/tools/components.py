"""A list of components as step 3 gives it: what is wrong with it, and the tree it makes of the one before. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lopen.tasks.tree import Component, State, Tree, find_cycle
from lopen.tools.inputs import ComponentInput
from lopen.workflow.session import Session


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
    """What is wrong with a list of components: names, dependencies, cycles, criteria. Empty if nothing is."""
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


def by_name(wanted: Sequence[ComponentInput], tree: Tree) -> list[ComponentInput]:
    """The list with dependencies named as it names them, also where they were given by the id of an earlier plan."""
    names = {c.name.casefold() for c in wanted}
    known = {c.id: c.name for c in tree.components if c.name.casefold() in names}
    return [
        c.model_copy(
            update={"depends_on": [d if d.casefold() in names else known.get(d, d) for d in c.depends_on]}
        )
        for c in wanted
    ]


def merged(session: Session, wanted: Sequence[ComponentInput], criteria: Mapping[str, str]) -> Tree:
    """The new list of components over the old tree: what is finished stays finished.

    A component that is no longer named leaves the plan; where tasks of it are complete, those stay. One whose
    criteria changed in number or in words wants breaking down and verifying again.
    """
    old = {c.name.casefold(): c for c in session.tree.components}
    ids = _ids(wanted, old)
    components = [_renewed(c, old.get(c.name.casefold()), ids, session.criteria, criteria) for c in wanted]
    left = [c for name, c in old.items() if name not in ids and _complete_tasks(c)]
    there = {*ids.values(), *(c.id for c in left)}
    return Tree((*components, *(_finished(c, there, session.criteria, criteria) for c in left)))


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
    # Words may change under one id; only the same texts keep what was verified.
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
    """What stays of a component that left the plan: its complete tasks, for criteria that are still the same."""
    return replace(
        component,
        tasks=tuple(t for t in component.tasks if t.state is State.COMPLETE),
        depends_on=tuple(d for d in component.depends_on if d in there),
        criteria=tuple(i for i in component.criteria if i in now and before.get(i) == now[i]),
        broken_down=True,
    )
