"""Assessment: where the facts put a session, whatever step was saved; and the scope that is held against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from lopen.workflow.next_step import Scope, assess, scope_of
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree, next_task, selectable
from tests.sessions import changed
from tests.workflow.examples import APPROVAL, CRITERIA, building, session, sessions
from tests.workflow.trees import completed

QUICK = settings(deadline=None, max_examples=30)


def planned(component: Component | None = None, **fields: Any) -> Session:
    """An approved session with a plan, whose selected component is this one."""
    others = TaskTree((component or Component("other", "Other"),))
    selected = component.id if component else None
    return changed(building(), **{"tree": others, "selected": selected, **fields})


@given(sessions())
@QUICK
def test_without_an_approval_nothing_leads_past_the_gate(wanted: Session) -> None:
    assert assess(replace(wanted, approval=None)) is Step.DRAFT_SPECIFICATION
    assert assess(wanted) is not Step.COMPLETE
    assert assess(replace(wanted, step=Step.REPEAT)) is assess(wanted), "the saved step does not count"


OPEN, DONE = Task("t1", "T"), Task("t2", "T", state=State.COMPLETE)


@pytest.mark.parametrize(
    ("wanted", "step"),
    [
        (planned(dependencies=None), Step.DETERMINE_DEPENDENCIES),
        (planned(tree=TaskTree()), Step.IDENTIFY_COMPONENTS),
        (planned(), Step.SELECT_NEXT_COMPONENT),
        (planned(Component("c", "C")), Step.BREAK_INTO_TASKS),
        (planned(Component("c", "C", tasks=(DONE,))), Step.BREAK_INTO_TASKS),
        (planned(Component("c", "C", tasks=(DONE, OPEN))), Step.ITERATE_THROUGH_TASKS),
        (planned(Component("c", "C", tasks=(DONE,), broken_down=True)), Step.ITERATE_THROUGH_TASKS),
        (planned(Component("c", "C", tasks=(DONE,), verified=True)), Step.REPEAT),
        (
            planned(Component("c", "C", tasks=(DONE, OPEN)), replan=Step.IDENTIFY_COMPONENTS),
            Step.IDENTIFY_COMPONENTS,
        ),
        (planned(Component("c", "C"), replan=Step.DETERMINE_DEPENDENCIES), Step.DETERMINE_DEPENDENCIES),
    ],
)
def test_it_is_the_earliest_step_whose_result_is_not_there(wanted: Session, step: Step) -> None:
    assert assess(wanted) is step


def test_a_plan_without_a_scope_is_no_plan_to_build_from() -> None:
    rebuilt = changed(building(), original_scope=None)
    assert assess(rebuilt) is Step.IDENTIFY_COMPONENTS
    assert assess(changed(rebuilt, original_scope=0)) is Step.IDENTIFY_COMPONENTS


def test_a_component_that_is_no_longer_there_is_not_selected() -> None:
    gone = changed(building(), selected="gone")
    assert assess(gone) is Step.SELECT_NEXT_COMPONENT


# No reachable dead end: whoever does what each assessed step asks for comes to the end


def done(wanted: Session, step: Step) -> Session | None:
    """The session after the result of `step` was recorded; None where only a person can help."""
    tree = wanted.tree
    component = tree.component(wanted.plan.selected or "")
    match step:
        case Step.DRAFT_SPECIFICATION:
            return replace(wanted, approval=APPROVAL)
        case Step.DETERMINE_DEPENDENCIES:
            replan = Step.IDENTIFY_COMPONENTS if tree.components else None
            return changed(wanted, dependencies=(), replan=replan)
        case Step.IDENTIFY_COMPONENTS:
            tree = TaskTree(tree.components or (Component("new", "New", criteria=tuple(CRITERIA)),))
            scope = len(tree.components) + len(CRITERIA)
            return changed(
                wanted, tree=tree, criteria=CRITERIA, original_scope=scope, replan=None, selected=None
            )
        case Step.SELECT_NEXT_COMPONENT:
            choices = [c for c in selectable(tree) if c.open_tasks or not any(t.given_up for t in c.tasks)]
            return changed(wanted, selected=choices[0].id, replan=None) if choices else None
        case Step.REPEAT:
            return changed(wanted, selected=None)
        case _:
            assert component is not None
            return changed(wanted, tree=tree.with_component(worked(component, step)), replan=None)


def worked(component: Component, step: Step) -> Component:
    """One task broken down, completed, or the component's boundary passed."""
    if step is Step.BREAK_INTO_TASKS:
        more = (*component.tasks, Task(f"{component.id}-new", "New"))
        return replace(component, tasks=more, broken_down=True)
    task = next_task(component)
    if task is None:
        return replace(component, verified=True)
    ended = replace(task, state=State.COMPLETE)
    return replace(component, tasks=tuple(ended if t is task else t for t in component.tasks))


@given(sessions())
@QUICK
def test_whoever_does_what_is_due_comes_to_the_end_or_to_what_a_person_gave_up(wanted: Session) -> None:
    given_up = any(t.given_up for t in wanted.tree.tasks)
    bound = 12 + 5 * len(wanted.tree.components) + 2 * len(list(wanted.tree.tasks))
    for _ in range(bound):
        step = assess(wanted)
        complete = all(c.state is State.COMPLETE for c in wanted.tree.components)
        if step is Step.SELECT_NEXT_COMPONENT and complete:
            return
        component = wanted.tree.component(wanted.plan.selected or "")
        if step is Step.ITERATE_THROUGH_TASKS and component and given_up_alone(component):
            wanted = changed(wanted, selected=None)
            continue
        after = done(wanted, step)
        if after is None:
            assert given_up
            return
        wanted = after
    raise AssertionError(f"no end in {bound} steps, still at {step.value}")


def given_up_alone(component: Component) -> bool:
    """Nothing is open in it, and something was given up."""
    return not component.open_tasks and any(t.given_up for t in component.tasks)


# Scope


@pytest.mark.parametrize(
    ("completed_scope", "original", "known", "reached"),
    [
        (0, None, False, False),
        (5, None, False, False),
        (0, 0, False, False),
        (1, 2, True, False),
        (2, 2, True, True),
        (3, 2, True, True),
    ],
)
def test_a_scope_of_zero_or_unknown_size_is_never_reached(
    completed_scope: int, original: int | None, known: bool, reached: bool
) -> None:
    scope = Scope(completed_scope, original)
    assert (scope.known, scope.reached) == (known, reached)


def test_a_criterion_shared_by_two_components_waits_for_both() -> None:
    one = completed(Component("a", "A", criteria=("AC-1",)))
    two = Component("b", "B", criteria=("AC-1", "AC-2"))
    wanted = session(tree=TaskTree((one, two)), criteria={"AC-1": "x", "AC-2": "y"}, original_scope=4)
    assert scope_of(wanted) == Scope(1, 4)
    wanted = changed(wanted, tree=wanted.tree.with_component(completed(two)))
    assert scope_of(wanted) == Scope(4, 4)
    assert scope_of(wanted).reached
