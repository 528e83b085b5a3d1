"""The tree of work: its moves, what rolls up, what comes next, and what a change shares with the tree before it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lopen.core.errors import LopenError
from lopen.workflow.task_tree import (
    MOVES,
    Component,
    IllegalMove,
    Progress,
    State,
    Task,
    TaskTree,
    find_cycle,
    next_task,
    progress,
    roll_up,
    selectable,
)
from tests.workflow.trees import completed, tasks, tree_of, trees

P, G, C, F = State.PENDING, State.IN_PROGRESS, State.COMPLETE, State.FAILED


@pytest.mark.parametrize("current", State)
@pytest.mark.parametrize("target", State)
def test_a_task_moves_along_four_edges_and_no_other(current: State, target: State) -> None:
    allowed = {(P, G), (G, C), (G, F), (F, G)}
    assert allowed == MOVES
    if (current, target) in allowed:
        assert Task("t", "T", state=current).to(target).state is target
        return
    with pytest.raises(IllegalMove, match=f"from {current.value} to {target.value}"):
        Task("t", "T", state=current).to(target)


def test_reopening_forgets_the_commit_and_where_the_work_began_but_not_the_failures() -> None:
    done = Task("t", "T", state=C, commit="abc", base="def", failures=2, reasons=("why",))
    assert done.reopen() == Task("t", "T", state=P, failures=2, reasons=("why",))


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ([], P),
        ([P, P], P),
        ([C, C], C),
        ([C, P], G),
        ([G, P], G),
        ([C, F, G], F),
        ([F], F),
    ],
)
def test_the_whole_is_failed_then_all_complete_then_all_pending_then_in_progress(
    states: list[State], whole: State
) -> None:
    assert roll_up(states) is whole


@given(st.lists(st.sampled_from(State)))
def test_rolling_up_does_not_depend_on_the_order(states: list[State]) -> None:
    assert roll_up(states) is roll_up(sorted(states))


@given(trees())
@settings(deadline=None)
def test_a_component_is_complete_only_when_verified_with_every_task_complete(tree: TaskTree) -> None:
    for component in tree.components:
        naive = component.verified and all(t.state is C for t in component.tasks)
        assert (component.state is C) == naive


def test_a_task_given_up_keeps_its_component_from_being_complete() -> None:
    skipped = Component("c", "C", tasks=(Task("t", "T", given_up="no use"),), verified=True)
    assert skipped.open_tasks == ()
    assert skipped.state is not C


@given(trees())
@settings(deadline=None)
def test_queries_agree_with_a_naive_reading(tree: TaskTree) -> None:
    every = [(c, t) for c in tree.components for t in c.tasks]
    assert list(tree.tasks) == [t for _, t in every]
    assert [c.open_tasks for c in tree.components] == [
        tuple(t for t in c.tasks if t.state is not C and t.given_up == "") for c in tree.components
    ]
    done = [c for c in tree.components if c.state is C]
    assert progress(tree) == Progress(
        len([t for _, t in every if t.state is C]), len(every), len(done), len(tree.components)
    )
    ready = [
        c
        for c in tree.components
        if c not in done and not any(d not in [x.id for x in done] for d in c.depends_on)
    ]
    assert list(selectable(tree)) == ready
    for component, task in every:
        assert tree.task(task.id) is task
        assert tree.owner(task.id) is component
    assert tree.task("nobody") is None
    assert tree.owner("nobody") is None


@given(trees())
@settings(deadline=None)
def test_something_is_selectable_until_everything_is_complete(tree: TaskTree) -> None:
    for _ in range(len(tree.components) + 1):
        choices = selectable(tree)
        if not choices:
            break
        tree = tree.with_component(completed(choices[0]))
    assert all(c.state is C for c in tree.components)


@given(st.lists(st.sampled_from(State), max_size=6), st.sets(st.integers(0, 5)))
def test_next_is_the_task_under_way_else_the_first_open_one(states: list[State], skipped: set[int]) -> None:
    work = tuple(
        Task(str(n), str(n), state=s, given_up="no use" if n in skipped else "") for n, s in enumerate(states)
    )
    open_ids = [n for n, s in enumerate(states) if s is not C and n not in skipped]
    under_way = [n for n in open_ids if states[n] is G]
    expected = next(iter(under_way or open_ids), None)
    found = next_task(Component("c", "C", tasks=work))
    assert (found.id if found else None) == (None if expected is None else str(expected))


def test_a_component_answers_to_its_id_first_then_to_its_name_in_any_case() -> None:
    one, two = Component("parser", "Lexer"), Component("lexer", "Parser")
    tree = TaskTree((one, two))
    assert tree.component("lexer") is two
    assert tree.component(" PARSER ") is two
    assert tree.component("parser") is one
    assert tree.component("printer") is None


@given(trees(), st.data())
@settings(deadline=None)
def test_changing_a_task_changes_it_alone_and_shares_the_rest(tree: TaskTree, data: st.DataObject) -> None:
    every = list(tree.tasks)
    if not every:
        return
    changed = data.draw(tasks(data.draw(st.sampled_from(every)).id))
    after = tree.with_task(changed)
    assert after.task(changed.id) is changed
    for before_component, after_component in zip(tree.components, after.components, strict=True):
        if before_component is tree.owner(changed.id):
            assert replace(after_component, tasks=()) == replace(before_component, tasks=())
            pairs = zip(before_component.tasks, after_component.tasks, strict=True)
            assert all(b is a for b, a in pairs if b.id != changed.id)
        else:
            assert after_component is before_component


def test_a_change_among_10_000_tasks_makes_one_component_and_one_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def counting(kind: Any) -> None:
        original = kind.__init__

        def count(self: object, *args: object, **kwargs: object) -> None:
            made.append(kind.__name__)
            original(self, *args, **kwargs)

        monkeypatch.setattr(kind, "__init__", count)

    tree = tree_of(10, 1_000)
    changed = Task("c7-t999", "Changed")
    for kind in (Task, Component, TaskTree):
        counting(kind)
    assert tree.with_task(changed).task("c7-t999") is changed
    assert sorted(made) == ["Component", "TaskTree"]


def test_added_work_goes_last_and_wants_the_component_verified_again() -> None:
    tree = TaskTree((completed(tree_of(1, 2).components[0]),))
    assert tree.state is C
    after = tree.with_added("Component 0", Task("new", "New", added=True))
    assert [t.id for t in after.tasks] == ["c0-t0", "c0-t1", "new"]
    assert not after.components[0].verified
    assert after.state is State.IN_PROGRESS


def test_what_is_not_there_cannot_be_changed() -> None:
    with pytest.raises(LopenError, match="there is no task t"):
        TaskTree().with_task(Task("t", "T"))
    with pytest.raises(LopenError, match="there is no component c"):
        TaskTree().with_added("c", Task("t", "T"))


GRAPHS = st.dictionaries(st.sampled_from("abcde"), st.lists(st.sampled_from("abcde"), max_size=3), max_size=5)


@given(GRAPHS)
def test_a_cycle_is_found_exactly_where_there_is_one_and_leads_along_edges(
    graph: dict[str, list[str]],
) -> None:
    cycle = find_cycle(graph)
    assert bool(cycle) == any(_reaches(graph, node, node) for node in graph)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(after in graph.get(before, []) for before, after in pairwise(cycle))


def _reaches(graph: dict[str, list[str]], start: str, goal: str) -> bool:
    seen, frontier = set(), list(graph.get(start, []))
    while frontier:
        node = frontier.pop()
        if node == goal:
            return True
        if node not in seen:
            seen.add(node)
            frontier += graph.get(node, [])
    return False


def test_what_depends_on_itself_is_a_cycle() -> None:
    assert find_cycle({"a": ["a"]}) == ("a", "a")
    assert find_cycle({"a": ["b"], "b": []}) == ()
