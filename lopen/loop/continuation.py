"""Continuing the iteration that an interruption cut off, or saying why a fresh one begins."""

from __future__ import annotations

from lopen.base.events import Notice
from lopen.loop.context import SessionContext
from lopen.loop.conversation import Conversation
from lopen.loop.iteration import bench_for, open_budget, runner_for
from lopen.loop.resumption import changed_files, changes_notice, fits, resumed, summary
from lopen.loop.startup import BUDGET_EXTENDED
from lopen.prompts.state_text import decisions
from lopen.storage.conversations import StoredConversation


def stored_conversation(context: SessionContext) -> StoredConversation | None:
    """Return the conversation that the run continues; None where a fresh one begins.

    The model is told in a fresh one what was read and done in one that cannot be continued.
    """
    if context.record.journal.session.iterations == 0:
        return None
    stored = context.record.conversations.load()
    if stored is None or fits(context, stored):
        return stored
    session = context.record.journal.session
    if stored.opening["step"] == session.step.value and (lines := summary(stored)):
        context.record.journal.change(notes=(*session.notes, lines))
    context.record.conversations.clear()
    return None


def continue_conversation(context: SessionContext, stored: StoredConversation) -> Conversation:
    """Continue the stored conversation at the turn where it stopped."""
    context.models.calls.connect()  # run nothing for a model that cannot be asked
    session = context.record.journal.session
    open_budget(context, session)
    bench, found = bench_for(context), resumed(context, stored)
    bench.evidence.passed.update(found.evidence.get("passed", {}))
    bench.evidence.ignored.update(found.evidence.get("ignored", ()))
    bench.evidence.confidence = found.evidence.get("confidence", bench.evidence.confidence)
    told = "\n".join(block.text for block in found.request.system)
    due = (*session.notes, *session.corrections, *decisions(session))
    new = [note for note in due if note not in told]
    if BUDGET_EXTENDED in new:
        new.append(context.guards.meter.snapshot())
    notice = "\n\n".join(filter(None, (*new, changes_notice(changed_files(context, stored)))))
    turn = found.counts.get("turn", 0) + (found.response is None)
    context.record.journal.tell(Notice("info", f"continuing iteration {session.iterations} in turn {turn}"))
    return Conversation(
        bench,
        context.models.calls,
        context.registry,
        runner_for(context, bench),
        found.request,
        context.agent_for(session.step),
        list(found.messages),
        **found.counts,
        store=context.record.conversations,
        resumed=found,
        left=context.guards.meter.left,
        notice=notice,
    )
