"""Step 3's list of components, as values: what is refused, and what becomes of the plan there was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lopen.tools.calls import ComponentInput
from lopen.tools.planning import component_problems, merged
from lopen.workflow.session import Session
from lopen.workflow.task_tree import Component, State, Task, TaskTree, find_cycle
from tests.workflow.examples import CRITERIA, session
from tests.workflow.trees import trees

DONE = Task("t1", "First", state=State.COMPLETE, commit="c" * 40)
OPEN = Task("t2", "Second")


def wanted(name: str, *criteria: str, **more: Any) -> ComponentInput:
    return ComponentInput(name=name, description="d", acceptance_criteria=list(criteria), **more)


def problems(*components: ComponentInput, criteria: tuple[str, ...] = ("AC-1",)) -> list[str]:
    return component_problems(components, criteria, ("Behaviour",))


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ([wanted("a", "AC-1")], []),
        (
            [wanted("a", "AC-1"), wanted("A")],
            ["two components are named 'a'", "two components are named 'A'"],
        ),
        ([wanted("a", "AC-1", depends_on=["b"])], ["a: depends_on names 'b', which is not in the list"]),
        ([wanted("a", "AC-1", "AC-9")], ["a: there is no criterion 'AC-9' (known: AC-1)"]),
        ([wanted("a")], ["no component covers AC-1"]),
        (
            [wanted("a", "AC-1", spec_sections=["Behaviour", "Gone"])],
            ["a: the specification has no section 'Gone'"],
        ),
        ([wanted("a", "AC-1", depends_on=["A"])], ["the dependencies go in a circle: a → a"]),
    ],
)
def test_what_is_wrong_is_said(components: list[ComponentInput], said: list[str]) -> None:
    assert problems(*components) == said


def plan(*components: Component, criteria: dict[str, str] | None = None) -> Session:
    """A session that has this plan."""
    return session(tree=TaskTree(components), criteria=CRITERIA if criteria is None else criteria)


FINISHED = Component(
    "core", "Core", criteria=("AC-1",), tasks=(DONE,), verified=True, broken_down=True, base="b" * 40
)


def test_what_is_finished_stays_finished_when_it_is_named_again() -> None:
    (core,) = merged(plan(FINISHED), [wanted("CORE", "AC-1", state="done")], CRITERIA).components
    assert (core.id, core.name, core.found) == ("core", "CORE", "done")
    assert core.state is State.COMPLETE
    assert core.tasks == (DONE,)
    assert core.base == "b" * 40


@pytest.mark.parametrize(
    ("ids", "now"),
    [
        (["AC-1", "AC-2"], CRITERIA),
        (["AC-2"], CRITERIA),
        (["AC-1"], CRITERIA | {"AC-1": "It adds, and says so"}),
    ],
)
def test_other_criteria_want_breaking_down_and_verifying_again_and_no_task_is_lost(
    ids: list[str], now: dict[str, str]
) -> None:
    (core,) = merged(plan(FINISHED), [wanted("Core", *ids)], now).components
    assert (core.verified, core.broken_down) == (False, False)
    assert core.tasks == (DONE,)


def test_a_component_that_is_no_longer_named_leaves_with_its_open_tasks() -> None:
    before = plan(Component("gone", "Gone", criteria=("AC-2",), tasks=(OPEN,)), FINISHED)
    after = merged(before, [wanted("New", "AC-1")], CRITERIA)
    assert [c.id for c in after.components] == ["new", "core"]
    assert after.components[1] == FINISHED


def test_of_one_that_was_begun_the_complete_tasks_stay_and_nothing_of_it_waits_for_what_is_gone() -> None:
    begun = Component(
        "begun",
        "Begun",
        criteria=("AC-1", "AC-2", "AC-3"),
        depends_on=("gone", "core"),
        tasks=(DONE, OPEN),
    )
    now = {"AC-1": CRITERIA["AC-1"], "AC-2": "Other words"}
    after = merged(plan(begun, FINISHED, Component("gone", "Gone")), [wanted("New", "AC-1", "AC-2")], now)
    kept = after.component("begun")
    assert kept is not None
    assert kept.tasks == (DONE,)
    assert kept.criteria == ("AC-1",)
    assert kept.depends_on == ("core",)
    assert (kept.broken_down, kept.verified) == (True, False)


@given(trees(), st.data())
@settings(deadline=None, max_examples=60)
def test_no_complete_task_is_ever_lost_and_no_component_waits_for_ever(
    tree: TaskTree, data: st.DataObject
) -> None:
    before = session(tree=tree, criteria=CRITERIA)
    names = data.draw(
        st.lists(
            st.sampled_from([c.name for c in tree.components] + ["new", "newer"]), unique_by=str.casefold
        )
    )
    given_components = [
        wanted(
            name or "blank",
            *data.draw(st.lists(st.sampled_from(sorted(CRITERIA)), unique=True)),
            depends_on=names[:n] and ["new"] if "new" in names[:n] else [],
        )
        for n, name in enumerate(names)
        if name.strip() and len(name) <= 72 and name.isprintable()
    ]
    folded = {c.name.casefold() for c in given_components}
    if len(folded) < len(given_components):
        return
    after = merged(before, given_components, CRITERIA)
    done = {t.id for t in tree.tasks if t.state is State.COMPLETE}
    # Two old components of one name: the later one is meant
    last = {c.name.casefold(): c for c in tree.components}
    reachable = {t.id for c in last.values() for t in c.tasks}
    assert done & reachable <= {t.id for t in after.tasks}
    ids = [c.id for c in after.components]
    assert len(set(ids)) == len(ids)
    assert all(d in ids for c in after.components for d in c.depends_on)
    assert not find_cycle({c.id: c.depends_on for c in after.components})
