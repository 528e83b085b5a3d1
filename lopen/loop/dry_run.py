"""What a run would send first, found without sending it: the first iteration up to its request.

To be given the ports of a copy of the session's state. Only the copy changes; git, files and verify commands are left
alone, so that it ends where a run would go on with one of those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lopen.git.repository import versioned
from lopen.guardrails.pipeline import run as run_guardrails
from lopen.guardrails.pipeline import selected
from lopen.llm.messages import Request
from lopen.loop.approval_gate import (
    check_branch,
    on_branch,
    on_own_branch,
    refuse_dirt,
    take_approval,
    valid_approval,
)
from lopen.loop.boundaries import to_verify
from lopen.loop.context import Ports
from lopen.loop.guard_facts import guard_facts
from lopen.loop.iteration import (
    advance_alone,
    begin,
    bench_for,
    conversation_for,
    drafts,
    fit_spec,
    given_up,
    look,
    readable_spec,
)
from lopen.loop.run import guard_pause
from lopen.loop.startup import taken_up, unanswered
from lopen.loop.task_commit import adopt
from lopen.workflow.pauses import gate_pause
from lopen.workflow.session import Pause
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import State


@dataclass(frozen=True, slots=True)
class Unsent:
    """No request of the session's model comes first: why, and the command that goes on, where a person must."""

    reason: str
    command: str = ""


def foresee(ports: Ports, *, resumed: bool, apart: bool) -> Request | Unsent:
    """The first request, or what comes in its place. `apart`: the run will not work in this checkout.

    Raises what the run would raise before it sends anything.
    """
    session = ports.journal.session
    if session.branch is not None and not apart:
        on_branch(ports, session.branch)
    session, _ = adopt(session, ports.repository)
    session = ports.journal.save(taken_up(ports, session, resumed=resumed))
    ports.meter.open(session.id, session.module, agent=ports.agent_for(session.step))
    if waits := unanswered(ports):
        return _waiting(waits)
    while True:
        if waits := look(ports):
            return _waiting(waits)
        if first := _verifies(ports):
            return Unsent(first)
        moved = _moved(ports, apart)
        if isinstance(moved, Pause):
            return _waiting(moved)
        if not moved:
            return _request(ports)


def _waiting(pause: Pause) -> Unsent:
    return Unsent(pause.message, pause.command)


def _moved(ports: Ports, apart: bool) -> Pause | bool:
    """As `advance_alone`, without a question to anybody and without the branch."""
    if ports.journal.session.step is not Step.DRAFT_SPECIFICATION:
        return advance_alone(ports)
    spec, module = readable_spec(ports), ports.journal.session.module
    if drafts(ports, spec):
        return False
    spec = fit_spec(ports, spec)
    given = valid_approval(ports, spec)
    if given is None:
        return gate_pause(module, "it waits at the gate: the specification passes `lopen check`")
    if ports.commits and not apart:
        repository, branch = versioned(ports.repository), ports.settings.git.branch_prefix + module
        if not on_own_branch(repository, ports.journal.session.id, branch):
            refuse_dirt(repository, module)
        check_branch(repository, module, branch)
    take_approval(ports, given)
    return True


def _verifies(ports: Ports) -> str:
    """What lopen verifies by itself before a model's turn comes; empty where it comes at once."""
    session = ports.journal.session
    judge = f"{ports.settings.oracle.model} is asked to judge where that passes"
    if session.step is Step.SELECT_NEXT_COMPONENT:
        due = next(to_verify(session.tree), None)
        if due is not None:
            return f"lopen first verifies {due.name}, which was recorded as done; {judge}"
        if all(c.state is State.COMPLETE for c in session.tree.components):
            return f"lopen first verifies the module; {judge}"
    component = session.tree.component(session.selected or "")
    if session.step is not Step.ITERATE_THROUGH_TASKS or component is None:
        return ""
    if component.open_tasks or given_up(component):
        return ""
    return f"lopen first verifies {component.name}, whose tasks are complete; {judge}"


def _request(ports: Ports) -> Request | Unsent:
    passed = run_guardrails(selected(ports.settings.guardrails.disabled), guard_facts(ports))
    if passed.block is not None:
        return _waiting(guard_pause(ports.journal.session, passed.block))
    begins = begin(ports, passed.corrections)
    if isinstance(begins, Pause):
        return _waiting(begins)
    talk = conversation_for(ports, bench_for(ports))
    return replace(talk.request, messages=tuple(talk.messages))
