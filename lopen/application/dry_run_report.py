"""A dry run: the first request and what the build may cost, found on a copy of the state in memory."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime

from lopen.application.command_context import CommandContext
from lopen.application.estimate import tell
from lopen.application.run_options import ResumeOptions
from lopen.base.errors import ExitCode, LopenError
from lopen.base.money import dollars
from lopen.limits.stores.opening import copy_shared
from lopen.llm.messages import Request
from lopen.loop.dry_run import Unsent, dry, first_request
from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded
from lopen.storage.sessions import SessionStore
from lopen.workflow.session import Session
from lopen.workflow.steps import Step


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
    """Print the first request. Send, save and ask nothing."""
    from lopen.application.wiring import wired
    from lopen.application.work_trees import apart, in_checkout

    with closing(store.database.in_memory()) as copy:
        copy_shared(loaded.settings.budget, copy)
        looked = in_checkout(replace(loaded, settings=_off_record(loaded.settings)))
        memory = SessionStore(copy, store.archives)
        with wired(context, looked, memory, session, options, heard=False, draft=draft) as run:
            looked_at = dry(run.loop, apart=apart(loaded.settings), now=datetime.now(UTC))
            found = first_request(looked_at, resumed=resumed)
            if isinstance(found, Request):
                _tell_request(context, found, looked_at.record.journal.session.step)
            if not draft:
                with suppress(LopenError):  # without a specification there is nothing to estimate
                    spec = looked_at.project.load_spec(session.module)
                    tell(context, spec, store, loaded.settings, options.model)
            if isinstance(found, Unsent):
                _tell_reason(context, found, looked_at.record.journal.session.step)
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
    from lopen.llm.messages import Usage
    from lopen.llm.prices import cost_usd
    from lopen.prompts.sizes import RequestSizes

    tokens = RequestSizes().tokens(found)
    cost = cost_usd(found.model, Usage(input_tokens=tokens, output_tokens=found.max_tokens))
    for block in found.system:
        context.say(block.text)
    context.say(found.messages[0]["content"][0]["text"])
    price = dollars(None) if cost is None else f"at most {dollars(cost, 4)}"
    context.say(
        f"first request: model {found.model}, about {tokens:,} tokens in, at most {found.max_tokens:,} out: {price}"
    )
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
