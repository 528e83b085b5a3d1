"""A dry run: the first request that a run would send, found by the run's own functions without sending it.

It gets a context over a copy of the session's state, with adapters that stop it at the first effect: a model call,
or a verification.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from lopen.base.clock import FakeClock
from lopen.limits.answers import ToolTrip
from lopen.llm.messages import OnText, Request, Response
from lopen.loop.context import NoApprover, People, SessionContext, SessionModels
from lopen.loop.model_calls import OnResponse, ignore_response
from lopen.loop.module_branch import CheckedBranch
from lopen.loop.oracle_calls import BoundaryVerdict
from lopen.loop.run import iterate
from lopen.loop.startup import start
from lopen.oracle.verdict import Scope
from lopen.tools.workbench import Nobody, Workbench
from lopen.workflow.session import Pause


@dataclass(frozen=True, slots=True)
class Unsent:
    """No request of the session's model comes first: the reason, and the command that goes on where a person must."""

    reason: str
    command: str = ""


class _Ended(BaseException):
    """The run came to its first effect. Not an `Exception`: no handler of the run takes it for a failure."""

    def __init__(self, found: Request | Unsent) -> None:
        super().__init__("the dry run ended")
        self.found = found


class FirstRequest:
    """Ends the dry run at the first model request."""

    def ask(
        self,
        request: Request,
        *,
        agent: str,
        turn: int,
        on_text: OnText,
        on_response: OnResponse = ignore_response,
    ) -> Response:
        raise _Ended(request)

    def start_agent(self, agent_id: str, turn: int) -> ToolTrip | None:
        return None

    def connect(self) -> None: ...


@dataclass(frozen=True)
class FirstVerification:
    """Ends the dry run where lopen would verify by itself before a model's turn comes."""

    model: str

    def pronounce(self, bench: Workbench, scope: Scope, subject: str, note: str = "") -> BoundaryVerdict:
        component = bench.session.tree.component(subject) if scope == "component" else None
        if component is None:
            what = "the module"
        elif component.tasks:
            what = f"{component.name}, whose tasks are complete"
        else:
            what = f"{component.name}, which was recorded as done"
        raise _Ended(Unsent(f"lopen first verifies {what}; {self.model} is asked to judge where that passes"))


def dry(context: SessionContext, *, apart: bool, now: datetime) -> SessionContext:
    """Return the context with adapters that change nothing. `apart`: the run works in another checkout."""
    branch = context.branch
    return replace(
        context,
        clock=FakeClock(now),
        record=replace(context.record, write_plan=lambda: None),
        models=SessionModels(
            FirstRequest(), FirstVerification(context.settings.oracle.model), context.models.override
        ),
        people=People(Nobody(), NoApprover()),
        asked=replace(context.asked, dry=True),
        branch=CheckedBranch(branch.place, branch.journal, branch.store, branch.settings, apart),
    )


def first_request(context: SessionContext, *, resumed: bool) -> Request | Unsent:
    """Return the first request, or what comes in its place.

    Raises what the run would raise before it sends anything.
    """
    try:
        if waits := start(context, resumed=resumed):
            return _waiting(waits)
        while True:
            session = iterate(context)
            if session.pause is not None:
                return _waiting(session.pause)
            if session.status != "running":
                return Unsent(f"the session is {session.status}")
    except _Ended as ended:
        return ended.found


def _waiting(pause: Pause) -> Unsent:
    return Unsent(pause.message, pause.command)
