"""The tree of work: its moves, what rolls up, what comes next, and what a change shares with the tree before it."""

from __future__ import annotations

from itertools import pairwise

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
from tests.workflow.trees import completed, tree_of, trees

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


@given(trees())
@settings(deadline=None, max_examples=40)
def test_queries_agree_with_a_naive_reading(tree: TaskTree) -> None:
    every = [(c, t) for c in tree.components for t in c.tasks]
    assert list(tree.tasks) == [t for _, t in every]
    assert [c.open_tasks for c in tree.components] == [
        tuple(t for t in c.tasks if t.state is not C and t.given_up == "") for c in tree.components
    ]
    done = [c for c in tree.components if c.verified and all(t.state is C for t in c.tasks)]
    assert [c for c in tree.components if c.state is C] == done
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


def test_added_work_goes_last_and_wants_the_component_verified_again() -> None:
    tree = TaskTree((completed(tree_of(1, 2).components[0]),))
    assert tree.state is C
    after = tree.with_added("Component 0", Task("new", "New", added=True))
    assert [t.id for t in after.tasks] == ["c0-t0", "c0-t1", "new"]
    assert not after.components[0].verified
    assert after.state is State.IN_PROGRESS


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


def test_a_changed_task_leaves_the_others_as_they_were() -> None:
    tree = tree_of(2, 2)
    changed = Task("c1-t0", "Changed")
    after = tree.with_task(changed)
    assert after.task("c1-t0") is changed
    assert after.components[0] is tree.components[0]
    assert after.components[1].tasks[1] is tree.components[1].tasks[1]
    with pytest.raises(LopenError, match="there is no task t"):
        tree.with_task(Task("t", "T"))
