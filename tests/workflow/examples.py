"""Sessions that the tests of this room start from, by hand and drawn at random."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from lopen.workflow.session import Approval, Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Component, State, Task, TaskTree
from tests.sessions import changed
from tests.workflow.trees import trees

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
APPROVAL = Approval("me", NOW, "", "hash", {}, {"verify-tests": "pytest -q"})
CRITERIA = {"AC-1": "It adds", "AC-2": "It subtracts", "AC-3": "It says no"}


def session(**fields: Any) -> Session:
    """A session at its beginning, with changes."""
    return changed(Session("calc-20260301-1", "calc", NOW), **fields)


def building(state: State = State.IN_PROGRESS, **fields: Any) -> Session:
    """A session in step 6 over one component with two tasks, the first in this state."""
    work = (Task("calc-t1", "First", state=state), Task("calc-t2", "Second"))
    tree = TaskTree((Component("core", "Core", criteria=("AC-1",), tasks=work, broken_down=True),))
    return session(
        step=Step.ITERATE_THROUGH_TASKS,
        approval=APPROVAL,
        dependencies=(),
        tree=tree,
        selected="core",
        criteria={"AC-1": "It adds"},
        original_scope=2,
        **fields,
    )


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Any session, in any step, whatever it holds."""
    tree = draw(trees())
    ids = [c.id for c in tree.components]
    return session(
        step=draw(st.sampled_from(Step)),
        approval=draw(st.sampled_from([None, APPROVAL])),
        dependencies=draw(st.sampled_from([None, ()])),
        tree=tree,
        selected=draw(st.sampled_from([None, "gone", *ids])),
        original_scope=draw(st.none() | st.integers(0, 8)),
        criteria=draw(st.sampled_from([{}, CRITERIA])),
        replan=draw(st.sampled_from([None, Step.DETERMINE_DEPENDENCIES, Step.IDENTIFY_COMPONENTS])),
        boundary_failures=draw(st.integers(0, 9)),
        context_level=draw(st.integers(0, 5)),
        planned_tasks=draw(st.integers(0, 5)),
    )
