"""The composition root: the only module that imports both the loop and the adapters."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from lopen.application.command_context import CommandContext, ResumeOptions, View
from lopen.application.open_store import kept_alerts
from lopen.application.session_model import REPLAY, session_model
from lopen.application.workplaces import (
    clean_room_of,
    sandbox_of,
    sandbox_rules,
    workplace_of,
)
from lopen.core.clock import Clock, SystemClock
from lopen.core.events import Notice, Recorded, SessionFailed, Subscriber
from lopen.files.module_branch import ModuleBranch
from lopen.files.workplace import Workplace
from lopen.files.workspace import Workspace
from lopen.judge.judging import AskedJudge
from lopen.limits.meter import Meter
from lopen.limits.opening import open_limits
from lopen.loop.context import (
    Guards,
    People,
    RunRequest,
    SessionContext,
    SessionModels,
    SessionRecord,
    TaskIds,
)
from lopen.loop.model_calls import ModelCall, ModelCalls
from lopen.models.messages import Model
from lopen.models.prompts.templates import check_templates
from lopen.models.retry import Retries, RetryPolicy
from lopen.sandbox.command import Sandbox
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings.schema import Settings
from lopen.store.audit import AuditTrail
from lopen.store.journal import ConversationStore, Journal
from lopen.store.log_rotation import StructuredLog
from lopen.store.project_documents import Specifications, write_plan
from lopen.store.sessions import SessionStore
from lopen.store.upkeep import Upkeep, log_limits
from lopen.tools.catalogue import Tool
from lopen.tools.questions import Person
from lopen.tools.running import Watch
from lopen.tools.workbench import Project
from lopen.verification.clean_room import CleanRoom
from lopen.verification.verifier import VerificationLog, Verifier
from lopen.workflow.session import Session

EXEMPT_WHERE_LOCAL = ("rapid_fire", "external_api")


@dataclass(frozen=True)
class StandIns:
    """The replacements of a session's own parts in a replay or a merge."""

    place: Workplace | None = None
    person: Person | None = None
    clock: Clock = field(default_factory=SystemClock)
    publish: bool = True  # show and log events


@contextmanager
def wired(
    context: CommandContext,
    settings: Settings,
    store: SessionStore,
    session: Session,
    options: ResumeOptions,
    *,
    draft: bool = False,
    stand_ins: StandIns | None = None,
) -> Iterator[SessionContext]:
    """Put a session together, and take it apart at the end. `draft`: step 1 is asked for."""
    stand_ins = stand_ins or StandIns()
    clock, secrets = stand_ins.clock, KnownSecrets(context.root, os.environ)
    check_templates(settings.workflow.templates)
    place = stand_ins.place or workplace_of(context, store, session, secrets, settings, clock)
    home, root = place.home, place.root
    sandbox = sandbox_of(context, settings, place, session.id)
    with ExitStack() as stack:
        running: list[SessionContext] = []
        view = stack.enter_context(context.presentation.view(context, options, secrets.redact, running))
        subscribers: tuple[Subscriber, ...] = ()
        if stand_ins.publish:
            subscribers = _subscribers(context, settings, store, session, view, secrets)
        journal = Journal(store, session, clock, redact=secrets.redact, subscribers=subscribers)
        model = session_model(stack, settings, options, journal, context, secrets)
        meter = _meter(context, settings, store, clock, model, session.limits.group)
        audit = AuditTrail(store.database, session.id, secrets.redact)
        room = clean_room_of(stack, settings, sandbox, place)
        verifier = _verifier(settings, sandbox, VerificationLog(journal, audit, clock), store, room)
        calls = _model_calls(context, settings, options, model, meter, journal, clock)
        files = Workspace(root, place.repository.files, secrets.watch_file)
        rules = sandbox_rules(sandbox, settings)
        project = Project(place, files, Specifications(home, store), sandbox, verifier, rules)
        override = "" if options.model.startswith(REPLAY) else options.model
        judge = AskedJudge(
            lambda request: calls.ask(ModelCall(request, "oracle")),
            verifier,
            project.load_spec,
            store,
            settings,
            override or settings.models.planning,
            secrets.hide,
        )
        loop = SessionContext(
            settings=settings,
            clock=clock,
            project=project,
            record=SessionRecord(
                journal=journal,
                store=store,
                audit=audit,
                conversations=ConversationStore(store.database, session.id, secrets.redact),
                write_plan=lambda: write_plan(home, journal.session),
                new_task_id=TaskIds(store, journal),
            ),
            models=SessionModels(calls, judge, override),
            guards=Guards(meter, Watch(meter.gate, journal, clock, project, secrets.redact)),
            people=People(
                stand_ins.person or context.presentation.person(context, settings, view),
                context.presentation.approver(context, settings, store, view),
            ),
            branch=ModuleBranch(place, journal, store, settings.git.convention),
            asked=RunRequest(options.prompt, draft, session.limits.iterations),
            more_tools=_server_tools(stack, context, settings, options, journal, secrets),
        )
        running.append(loop)
        yield loop


def _server_tools(
    stack: ExitStack,
    context: CommandContext,
    settings: Settings,
    options: ResumeOptions,
    journal: Journal,
    secrets: KnownSecrets,
) -> Callable[[], tuple[Tool, ...]]:
    """Return the tools of the person's MCP servers, which start when they are asked for; `stack` ends them.

    A recording is replayed without them: it would not have the same ones.
    """
    if not settings.mcp.servers or options.model.startswith(REPLAY):
        return tuple
    from lopen.mcp.server_tools import ServerTools

    def warn(text: str) -> None:
        journal.tell(Notice("warning", text))

    tools = ServerTools(settings.mcp.servers, context.root, secrets.redact, warn)
    stack.callback(tools.close)
    return tools


def _subscribers(
    context: CommandContext,
    settings: Settings,
    store: SessionStore,
    session: Session,
    view: View,
    secrets: KnownSecrets,
) -> tuple[Subscriber, ...]:
    """Return the subscribers of the session: the view, the log, the upkeep of `.lopen/`."""
    hide = secrets.redact
    state = context.root / ".lopen"
    log = StructuredLog(state / "logs", log_limits(settings), redact=hide, warn=context.warn)
    upkeep = Upkeep(store, state, settings, SystemClock(), warn=context.warn, session=session)
    return (_shown(context, view), log, upkeep, kept_alerts(settings, store.database, hide))


def _shown(context: CommandContext, view: View) -> Subscriber:
    """Return the view without the events that the command itself reports: failures, and how to start again."""

    def show(record: Recorded) -> None:
        event = record.event
        if context.json or not isinstance(event, SessionFailed):
            view(record)

    return show


def _meter(
    context: CommandContext, settings: Settings, store: SessionStore, clock: Clock, model: Model, group: str
) -> Meter:
    local = bool(getattr(model, "local", False))
    return Meter(
        context.limits(settings, store.database) if context.limits else open_limits(settings, store.database),
        settings,
        clock,
        exempt=EXEMPT_WHERE_LOCAL if local else (),
        group=group,
        warn=context.warn,
    )


def _verifier(
    settings: Settings, sandbox: Sandbox, log: VerificationLog, store: SessionStore, room: CleanRoom
) -> Verifier:
    session = log.journal.session
    approval = session.approval or store.approval(session.module)
    return Verifier(
        approval.commands if approval else {},
        room,
        sandbox,
        log,
        timeout_s=settings.sandbox.verify_timeout_s,
        network=settings.sandbox.network,
    )


def _model_calls(
    context: CommandContext,
    settings: Settings,
    options: ResumeOptions,
    model: Model,
    meter: Meter,
    journal: Journal,
    clock: Clock,
) -> ModelCalls:
    policy = RetryPolicy(base_s=settings.model.retry_base_s, max_retries=settings.model.max_retries)
    return ModelCalls(
        model,
        () if options.model else tuple(settings.models.fallback),
        Retries(policy, clock, random.Random(), pace=context.pace or meter),  # noqa: S311 - jitter, no secret
        meter,
        journal,
        clock,
    )
