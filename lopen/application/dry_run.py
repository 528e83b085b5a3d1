"""A dry run: the request that a run would send first, found by the run's own functions without sending it, and the cost.

The session gets a copy of its state in memory, and adapters that stop it at the first effect: a model call, or a
verification.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lopen.application.command_context import CommandContext
from lopen.application.estimate import tell
from lopen.application.run_options import ResumeOptions
from lopen.core.clock import FakeClock
from lopen.core.errors import ExitCode, LopenError
from lopen.core.money import dollars
from lopen.judge.verdict import Scope
from lopen.limits.answers import ToolTrip
from lopen.limits.stores.opening import copy_shared
from lopen.loop.context import NoApprover, People, SessionContext, SessionModels
from lopen.loop.model_calls import ModelCall
from lopen.loop.module_branch import CheckedBranch
from lopen.loop.oracle_calls import BoundaryVerdict
from lopen.loop.run import iterate
from lopen.loop.startup import start
from lopen.models.messages import Request, Response
from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded
from lopen.store.sessions import SessionStore
from lopen.tools.workbench import Nobody, Workbench
from lopen.workflow.session import Pause, Session
from lopen.workflow.steps import Step, number


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

    def ask(self, call: ModelCall) -> Response:
        raise _Ended(call.request)

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


def preview(
    context: CommandContext,
    loaded: Loaded,
    store: SessionStore,
    session: Session,
    options: ResumeOptions,
    *,
    resumed: bool,
    draft: bool,
) -> ExitCode:
    """Print what the build may cost, the limits, and the first request. Send, save and ask nothing."""
    from lopen.application.wiring import wired
    from lopen.application.work_trees import apart, in_checkout

    with closing(store.database.in_memory()) as copy:
        copy_shared(loaded.settings.budget, copy)
        looked = in_checkout(replace(loaded, settings=_off_record(loaded.settings)))
        memory = SessionStore(copy, store.archives)
        with wired(context, looked, memory, session, options, heard=False, draft=draft) as run:
            looked_at = dry(run.loop, apart=apart(loaded.settings), now=datetime.now(UTC))
            found = first_request(looked_at, resumed=resumed)
            if not draft:
                with suppress(LopenError):  # without a specification there is nothing to estimate
                    spec = looked_at.project.load_spec(session.module)
                    tell(context, spec, store, loaded.settings, options.model)
            if isinstance(found, Unsent):
                _tell_reason(context, found, looked_at.record.journal.session.step)
            else:
                _tell_request(context, found, looked_at.record.journal.session.step)
    return ExitCode.OK


def _off_record(settings: Settings) -> Settings:
    recording = settings.recording.model_copy(update={"enabled": False})
    budget = settings.budget.model_copy(update={"store": "sqlite"})
    return settings.model_copy(update={"recording": recording, "budget": budget})


def _tell_reason(context: CommandContext, found: Unsent, step: Step) -> None:
    context.say(f"no request would be sent: {found.reason}")
    if found.command:
        context.say(f"next: {found.command}")
    context.emit("dry_run", step=step.value, sent=False, reason=found.reason, command=found.command)


def _tell_request(context: CommandContext, found: Request, step: Step) -> None:
    from lopen.models.messages import Usage
    from lopen.models.prices import cost_usd
    from lopen.models.prompts.sizes import RequestSizes

    tokens = RequestSizes().tokens(found)
    cost = cost_usd(found.model, Usage(input_tokens=tokens, output_tokens=found.max_tokens))
    price = dollars(None) if cost is None else f"at most {dollars(cost)}"
    context.say(f"first step: {number(step)} of 7 ({step.value.replace('_', ' ')})")
    context.say(
        f"first request: model {found.model}, about {tokens:,} tokens in, at most {found.max_tokens:,} out: {price}"
    )
    if context.verbose:
        for text in (*(block.text for block in found.system), found.messages[0]["content"][0]["text"]):
            context.say(f"\n{text}")
    else:
        context.say("its prompt: add -v; nothing was sent")
    context.emit(
        "dry_run",
        step=step.value,
        sent=True,
        model=found.model,
        tools=[t.name for t in found.tools],
        input_tokens=tokens,
        max_tokens=found.max_tokens,
        cost_usd=cost,
        system=[b.text for b in found.system],
        opening=found.messages[0]["content"][0]["text"],
    )
