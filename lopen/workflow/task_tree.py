"""The module's components and tasks as values: every change returns a new tree that shares the unchanged parts.

Tasks change their state along `MOVES` only. A revert, a missing commit or drift can open a complete task again;
that is `reopen`, not an ordinary move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from lopen.core.errors import LopenError


class State(StrEnum):
    """The state of a task, a component or the module."""

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

REASONS_KEPT = 10  # of a task's failures in a row
REASON_CHARS = 2_000

Found = Literal["missing", "partial", "done"]


class IllegalMove(LopenError):
    """A state change that the table does not allow."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """An entry of a task's checklist."""

    name: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """The smallest unit of work in a component; it results in one commit.

    `failures` counts attempts in a row that were not accepted, since a person confirmed others; `reasons` has the latest reasons. `commit` is the
    commit that completed it. `given_up` is a person's reason to skip it, `aside` the backup of its work then.
    `files` are the files in the plan; `criteria` are ids, none for all of the component's.
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
    base: str | None = None  # the tree id at the start of the task, the base of its diff
    reasons: tuple[str, ...] = ()
    given_up: str = ""
    aside: str = ""
    files: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """True if the task still needs work."""
        return self.state is not State.COMPLETE and not self.given_up

    def to(self, target: State) -> Task:
        """Return this task in the state `target`.

        Raises:
            IllegalMove: the table has no such move.
        """
        if (self.state, target) not in MOVES:
            raise IllegalMove(f"a task cannot change from {self.state.value} to {target.value}")
        return replace(self, state=target)

    def fail(self, reason: str, *, counted: bool = False) -> Task:
        """Return this task failed for `reason`. `counted`: the attempt that ends counts already."""
        return (self.noted(reason) if counted else self.rejected(reason)).to(State.FAILED)

    def rejected(self, reason: str) -> Task:
        """Return this task with one more attempt that was not accepted, for `reason`."""
        return replace(self.noted(reason), failures=self.failures + 1)

    def noted(self, reason: str) -> Task:
        """Return this task with the reason of an attempt that was not accepted."""
        return replace(self, reasons=(*self.reasons, reason[:REASON_CHARS])[-REASONS_KEPT:])

    def reopen(self) -> Task:
        """Return this task as pending, without its commit; the caller records the change."""
        return replace(self, state=State.PENDING, commit=None, base=None)


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the module. `depends_on` and `criteria` contain component ids and criterion ids.

    `found` is the component's state in the code base according to step 3. `broken_down` is True after step 5 for the
    current criteria. Only a passing verification by lopen sets `verified`.
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
    base: str | None = None  # the tree id at the start of the component

    @property
    def state(self) -> State:
        """The combined state of the tasks; complete only if all are and the component's verification passed."""
        rolled = roll_up([t.state for t in self.tasks])
        if self.verified and (rolled is State.COMPLETE or not self.tasks):
            return State.COMPLETE
        return State.IN_PROGRESS if rolled is State.COMPLETE else rolled

    @property
    def given_up(self) -> bool:
        """True if a person skipped tasks of it and no other is open."""
        return not self.open_tasks and any(t.given_up for t in self.tasks)

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """The tasks that still need work, in order."""
        return tuple(t for t in self.tasks if t.open)

    def criteria_of(self, task: Task) -> tuple[str, ...]:
        """Return the criteria that a task is to meet; the only task of a component is to meet all of them."""
        named = tuple(i for i in task.criteria if i in self.criteria)
        return named if named and len(self.tasks) > 1 else self.criteria

    @property
    def open_criteria(self) -> tuple[str, ...]:
        """The criteria of the tasks that are not complete; without tasks, all criteria."""
        left = {i for task in self.tasks if task.state is not State.COMPLETE for i in self.criteria_of(task)}
        return tuple(i for i in self.criteria if i in left or not self.tasks)


def roll_up(states: Sequence[State]) -> State:
    """Combine the states of parts: failed if any is, complete if all are, pending if all are, else in progress."""
    if any(s is State.FAILED for s in states):
        return State.FAILED
    if states and all(s is State.COMPLETE for s in states):
        return State.COMPLETE
    if all(s is State.PENDING for s in states):
        return State.PENDING
    return State.IN_PROGRESS


@dataclass(frozen=True, slots=True)
class TaskTree:
    """The module's components in the order of recording."""

    components: tuple[Component, ...] = ()

    @property
    def state(self) -> State:
        """The combined state of the components."""
        return roll_up([c.state for c in self.components])

    @property
    def tasks(self) -> Iterator[Task]:
        """The tasks of all components, in order."""
        for component in self.components:
            yield from component.tasks

    def component(self, name_or_id: str) -> Component | None:
        """Return the component with that id, else with that name; ignore case and surrounding whitespace."""
        wanted = name_or_id.strip()
        for component in self.components:
            if component.id == wanted:
                return component
        folded = wanted.casefold()
        return next((c for c in self.components if c.name.casefold() == folded), None)

    def task(self, task_id: str) -> Task | None:
        """Return the task with that id."""
        return next((t for t in self.tasks if t.id == task_id), None)

    def owner(self, task_id: str) -> Component | None:
        """Return the component of the task."""
        position = self._position(task_id)
        return position[0] if position else None

    def _position(self, task_id: str) -> tuple[Component, int] | None:
        for component in self.components:
            for n, task in enumerate(component.tasks):
                if task.id == task_id:
                    return component, n
        return None

    def with_component(self, changed: Component) -> TaskTree:
        """Return this tree with the component of the same id replaced."""
        return TaskTree(tuple(changed if c.id == changed.id else c for c in self.components))

    def with_task(self, changed: Task) -> TaskTree:
        """Return this tree with the task of the same id replaced."""
        return self.with_split([changed])

    def with_split(self, pieces: Sequence[Task]) -> TaskTree:
        """Return this tree with the task that has the first piece's id replaced by all of them."""
        position = self._position(pieces[0].id)
        if position is None:
            raise LopenError(f"there is no task {pieces[0].id}")
        owner, n = position
        return self.with_component(replace(owner, tasks=(*owner.tasks[:n], *pieces, *owner.tasks[n + 1 :])))

    def with_added(self, component_id: str, task: Task) -> TaskTree:
        """Return this tree with `task` at the end of the component, which needs verification again."""
        owner = self.component(component_id)
        if owner is None:
            raise LopenError(f"there is no component {component_id}")
        return self.with_component(replace(owner, tasks=(*owner.tasks, task), verified=False))


def reopened(tree: TaskTree, ids: Collection[str]) -> TaskTree:
    """Return `tree` with those complete tasks open again, because their commits are missing.

    Their components are no longer verified. Tasks in progress get a new base.
    """
    for component in tree.components:
        if not any(t.id in ids for t in component.tasks):
            continue
        tasks = tuple(t.reopen() if t.id in ids else t for t in component.tasks)
        has_complete = any(t.state is State.COMPLETE for t in tasks)
        changed = replace(
            component, tasks=tasks, verified=False, base=component.base if has_complete else None
        )
        tree = tree.with_component(changed)
    for task in [t for t in tree.tasks if t.state is State.IN_PROGRESS]:
        tree = tree.with_task(replace(task, base=None))
    return tree


def completed_again(tree: TaskTree, commits: Mapping[str, str]) -> TaskTree:
    """Return `tree` with the tasks of `commits` (task → commit) complete, because a person restored their commits."""
    for task in tree.tasks:
        if task.id in commits:
            done = replace(
                task, state=State.COMPLETE, commit=commits[task.id], failures=0, reasons=(), base=None
            )
            tree = tree.with_task(done)
    return tree


@dataclass(frozen=True, slots=True)
class Progress:
    """The numbers of complete and of all tasks and components."""

    tasks_done: int = 0
    tasks: int = 0
    components_done: int = 0
    components: int = 0


def progress(tree: TaskTree) -> Progress:
    """Count the tree's tasks and components."""
    tasks = list(tree.tasks)
    return Progress(
        sum(t.state is State.COMPLETE for t in tasks),
        len(tasks),
        sum(c.state is State.COMPLETE for c in tree.components),
        len(tree.components),
    )


def next_task(component: Component) -> Task | None:
    """Return the task in progress, else the first open one.

    A failed task comes before later ones, which may build on it.
    """
    open_tasks = component.open_tasks
    return next((t for t in open_tasks if t.state is State.IN_PROGRESS), None) or next(iter(open_tasks), None)


def selectable(tree: TaskTree) -> tuple[Component, ...]:
    """Return the incomplete components whose dependencies are all complete."""
    done = {c.id for c in tree.components if c.state is State.COMPLETE}
    return tuple(c for c in tree.components if c.id not in done and all(d in done for d in c.depends_on))


def find_cycle(depends_on: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names along a cycle of a dependency graph, the first repeated last; empty without a cycle."""
    try:
        tuple(TopologicalSorter(depends_on).static_order())
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()
