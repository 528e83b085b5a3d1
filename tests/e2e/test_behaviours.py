"""The table of model behaviours, through the real command: what lopen says, what it costs, how it ends."""

from __future__ import annotations

import pytest

from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session
from tests.e2e.behaviours import BEHAVIOURS, Behaviour
from tests.e2e.conftest import MakeProject
from tests.project import Project
from tests.ran import Ran

QUICK = {"LOPEN_CIRCUIT__TOOL_FAILURE__COOLDOWN_BASE": "0.1"}  # the ladder's first rung in seconds, not 5


def session_of(project: Project) -> Session:
    database = Database(project.root / ".lopen" / "state.db")
    try:
        store = SessionStore(database)
        found = store.latest(module="calc")
        assert found is not None
        return found
    finally:
        database.close()


def guards(ran: Ran) -> list[tuple[str, str]]:
    """Guard and verdict of every guardrail line, in the order of their first appearance."""
    return list(dict.fromkeys((e["guard"], e["verdict"]) for e in ran.named("guardrail")))


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=[b.name.replace(" ", "-") for b in BEHAVIOURS])
def test_each_behaviour_is_met_within_its_bound(behaviour: Behaviour, make_project: MakeProject) -> None:
    project = make_project(behaviour.script(), **QUICK)
    project.specify()

    if "approve" not in behaviour.command:
        assert project.lopen("approve", "calc", "--yes").code == 0

    ran = project.lopen(*behaviour.command, "--json")

    assert ran.code == behaviour.code, ran.out[-3000:] + ran.err
    assert len(project.requests) <= behaviour.turns
    assert guards(ran) == list(behaviour.guards), "\n".join(map(str, ran.named("guardrail")))
    assert all(e["reason"] and e["action"] for e in ran.named("guardrail"))
    session = session_of(project)
    assert (session.pause.kind if session.pause else "") == behaviour.waits
    assert next((t.state.value for t in session.tree.tasks), "") == behaviour.task
    complete = [s for s in project.subjects() if s.startswith("feat(")]
    assert len(complete) == behaviour.commits
    # Exit 0 means built: nothing is left open, nothing is left uncommitted.
    assert (ran.code == 0) == session.finished
    if session.finished:
        assert project.git("status", "--porcelain").split() == ["??", "specs/"]
    else:
        assert ran.named("session_paused")[-1]["command"].startswith("lopen ")
