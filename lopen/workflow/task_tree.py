"""The tree of work, as values: every change returns a new tree that shares what did not change.

State moves only along `MOVES` (docs/reference/workflow.md); a complete task may be reopened by a revert,
a vanished commit or drift, which is `reopen`, never an ordinary move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from lopen.base.errors import LopenError


class State(StrEnum):
    """Where a piece of work stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETE = "complete"
    FAILED = "failed"


MOVES: frozenset[tuple[State, State]] = frozenset(
    {
        (State.PENDING, State.IN_PROGRESS),
        (State.IN_PROGRESS, State.COMPLETE),
        (State.IN_PROGRESS, State.FAILED),
        (State.FAILED, State.IN_PROGRESS),
    }
)

Found = Literal["missing", "partial", "done"]


class IllegalMove(LopenError):
    """A state change that the table does not allow."""


def moved(current: State, target: State) -> State:
    """`target`, if a piece of work may go there from `current`; else `IllegalMove`."""
    if (current, target) not in MOVES:
        raise IllegalMove(f"a task cannot go from {current.value} to {target.value}")
    return target


@dataclass(frozen=True, slots=True)
class Subtask:
    """A line of a task's checklist."""

    name: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """An atomic step of a component: one commit.

    `failures` counts consecutive failures (a success resets it). `commit` is the commit (or, with
    `git.auto_commit = false`, the tree) that completed it. `given_up` holds a person's reason to skip it.
    """

    id: str
    name: str
    description: str = ""
    type: str = "implement"
    state: State = State.PENDING
    subtasks: tuple[Subtask, ...] = ()
    spec_sections: tuple[str, ...] = ()
    added: bool = False
    failures: int = 0
    commit: str | None = None
    base: str | None = None  # tree id when work on it began: what its diff is taken from
    note: str = ""
    given_up: str = ""

    @property
    def open(self) -> bool:
        """Still to be worked on."""
        return self.state is not State.COMPLETE and not self.given_up

    def to(self, target: State) -> Task:
        """This task after an ordinary move."""
        return replace(self, state=moved(self.state, target))

    def reopen(self) -> Task:
        """This task pending again, its commit forgotten (recorded as such by the caller)."""
        return replace(self, state=State.PENDING, commit=None, base=None)


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the module. `depends_on` and `criteria` hold component ids and criterion ids.

    `found` is what step 3 saw in the code base; `broken_down` says that step 5 has been through for the
    criteria it now has; `verified` is set by lopen's own passing verification.
    """

    id: str
    name: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    spec_sections: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    found: Found = "missing"
    evidence: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    broken_down: bool = False
    verified: bool = False
    base: str | None = None  # tree id when work on it began

    @property
    def state(self) -> State:
        """Rolled up from the tasks; complete only where all of them are and the component's verification passed."""
        rolled = roll_up([t.state for t in self.tasks])
        if self.verified and (rolled is State.COMPLETE or not self.tasks):
            return State.COMPLETE
        return State.IN_PROGRESS if rolled is State.COMPLETE else rolled

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """Tasks that still want work, in order."""
        return tuple(t for t in self.tasks if t.open)


def roll_up(states: Sequence[State]) -> State:
    """The state of a whole from its parts: failed, then all complete, all pending, else in progress."""
    if any(s is State.FAILED for s in states):
        return State.FAILED
    if states and all(s is State.COMPLETE for s in states):
        return State.COMPLETE
    if all(s is State.PENDING for s in states):
        return State.PENDING
    return State.IN_PROGRESS


@dataclass(frozen=True, slots=True)
class TaskTree:
    """The module's components, in the order in which they were recorded."""

    components: tuple[Component, ...] = ()

    @property
    def state(self) -> State:
        """The module's rolled-up state."""
        return roll_up([c.state for c in self.components])

    @property
    def tasks(self) -> Iterator[Task]:
        """All tasks, component by component."""
        for component in self.components:
            yield from component.tasks

    def component(self, name_or_id: str) -> Component | None:
        """The component of that id, else of that name (case and outer blanks do not count)."""
        wanted = name_or_id.strip()
        for component in self.components:
            if component.id == wanted:
                return component
        folded = wanted.casefold()
        return next((c for c in self.components if c.name.casefold() == folded), None)

    def task(self, task_id: str) -> Task | None:
        """The task of that id."""
        return next((t for t in self.tasks if t.id == task_id), None)

    def owner(self, task_id: str) -> Component | None:
        """The component that holds the task."""
        place = self._place(task_id)
        return place[0] if place else None

    def _place(self, task_id: str) -> tuple[Component, int] | None:
        for component in self.components:
            for n, task in enumerate(component.tasks):
                if task.id == task_id:
                    return component, n
        return None

    def with_component(self, changed: Component) -> TaskTree:
        """This tree with the component of the same id replaced."""
        return TaskTree(tuple(changed if c.id == changed.id else c for c in self.components))

    def with_task(self, changed: Task) -> TaskTree:
        """This tree with the task of the same id replaced."""
        place = self._place(changed.id)
        if place is None:
            raise LopenError(f"there is no task {changed.id}")
        owner, n = place
        return self.with_component(replace(owner, tasks=(*owner.tasks[:n], changed, *owner.tasks[n + 1 :])))

    def with_added(self, component_id: str, task: Task) -> TaskTree:
        """This tree with `task` at the end of the component, which wants verifying again."""
        owner = self.component(component_id)
        if owner is None:
            raise LopenError(f"there is no component {component_id}")
        return self.with_component(replace(owner, tasks=(*owner.tasks, task), verified=False))


def reopened(tree: TaskTree, ids: Collection[str]) -> TaskTree:
    """`tree` with those complete tasks open again: their commits are gone.

    What was in progress starts from what is there now, and what was verified no longer is.
    """
    for component in tree.components:
        if not any(t.id in ids for t in component.tasks):
            continue
        tasks = tuple(t.reopen() if t.id in ids else t for t in component.tasks)
        begun = any(t.state is State.COMPLETE for t in tasks)
        changed = replace(component, tasks=tasks, verified=False, base=component.base if begun else None)
        tree = tree.with_component(changed)
    for task in [t for t in tree.tasks if t.state is State.IN_PROGRESS]:
        tree = tree.with_task(replace(task, base=None))
    return tree


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts for people: tasks and components done of those known."""

    tasks_done: int = 0
    tasks: int = 0
    components_done: int = 0
    components: int = 0


def progress(tree: TaskTree) -> Progress:
    """How far the tree is."""
    tasks = list(tree.tasks)
    return Progress(
        sum(t.state is State.COMPLETE for t in tasks),
        len(tasks),
        sum(c.state is State.COMPLETE for c in tree.components),
        len(tree.components),
    )


def next_task(component: Component) -> Task | None:
    """What to work on next: the task already in progress, else the first open one in order.

    A failed task is retried before later ones, since those were planned to build on it.
    """
    open_tasks = component.open_tasks
    return next((t for t in open_tasks if t.state is State.IN_PROGRESS), None) or next(iter(open_tasks), None)


def selectable(tree: TaskTree) -> tuple[Component, ...]:
    """Components that may be selected now: not complete, with every dependency complete."""
    done = {c.id for c in tree.components if c.state is State.COMPLETE}
    return tuple(c for c in tree.components if c.id not in done and all(d in done for d in c.depends_on))


def find_cycle(depends_on: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """One cycle in a dependency graph: the names along it, first repeated last; empty if there is none."""
    try:
        tuple(TopologicalSorter(depends_on).static_order())
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()
