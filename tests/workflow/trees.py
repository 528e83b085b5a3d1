"""Trees of work that the tests start from, by hand and drawn at random."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from lopen.workflow.task_tree import Component, State, Subtask, Task, TaskTree

IDS = st.text("abcdefgh-", min_size=1, max_size=6)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def tree_of(components: int, tasks: int) -> TaskTree:
    """So many components with so many pending tasks each: `c0` … with `c0-t0` …."""
    return TaskTree(
        tuple(
            Component(
                f"c{n}", f"Component {n}", tasks=tuple(Task(f"c{n}-t{i}", f"Task {i}") for i in range(tasks))
            )
            for n in range(components)
        )
    )


@st.composite
def tasks(draw: st.DrawFn, task_id: str = "t") -> Task:
    """Any task with that id."""
    return Task(
        task_id,
        draw(TEXTS),
        draw(TEXTS),
        type=draw(st.sampled_from(["implement", "test", "review"])),
        state=draw(st.sampled_from(State)),
        subtasks=tuple(draw(st.lists(st.builds(Subtask, TEXTS, st.booleans()), max_size=2))),
        spec_sections=tuple(draw(st.lists(TEXTS, max_size=2))),
        added=draw(st.booleans()),
        failures=draw(st.integers(0, 9)),
        commit=draw(st.none() | st.just("c" * 40)),
        base=draw(st.none() | st.just("b" * 40)),
        reasons=tuple(draw(st.lists(TEXTS, max_size=2))),
        given_up=draw(st.sampled_from(["", "", "", "no use"])),
    )


@st.composite
def components(draw: st.DrawFn, component_id: str = "c", known: tuple[str, ...] = ()) -> Component:
    """Any component with that id, depending on some of `known`."""
    count = draw(st.integers(0, 4))
    return Component(
        component_id,
        draw(TEXTS),
        draw(TEXTS),
        depends_on=tuple(draw(st.lists(st.sampled_from(known), unique=True, max_size=3))) if known else (),
        spec_sections=tuple(draw(st.lists(TEXTS, max_size=2))),
        criteria=tuple(draw(st.lists(st.sampled_from(["AC-1", "AC-2", "AC-3"]), unique=True))),
        found=draw(st.sampled_from(["missing", "partial", "done"])),
        evidence=tuple(draw(st.lists(TEXTS, max_size=2))),
        tasks=tuple(draw(tasks(f"{component_id}-t{n}")) for n in range(count)),
        broken_down=draw(st.booleans()),
        verified=draw(st.booleans()),
        base=draw(st.none() | st.just("d" * 40)),
    )


@st.composite
def trees(draw: st.DrawFn) -> TaskTree:
    """Any tree; a component depends only on earlier ones, so that there is no cycle."""
    ids = draw(st.lists(IDS, unique=True, max_size=5))
    return TaskTree(tuple(draw(components(c, tuple(ids[:n]))) for n, c in enumerate(ids)))


def completed(component: Component) -> Component:
    """With all its tasks complete and its verification passed."""
    done = tuple(replace(t, state=State.COMPLETE, given_up="") for t in component.tasks)
    return replace(component, tasks=done, verified=True)
