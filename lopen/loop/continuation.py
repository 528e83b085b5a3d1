"""Continue an interrupted iteration: with the stored conversation, or with a fresh one that is told of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lopen.core.events import Notice
from lopen.loop.context import SessionContext
from lopen.loop.conversation import Conversation
from lopen.loop.iteration import bench_for, conversation_of, open_budget
from lopen.loop.startup import BUDGET_EXTENDED
from lopen.loop.transcript import Resumed, rebuilt
from lopen.models.prompts.parts import DECIDED, bullet, decisions
from lopen.store.journal import StoredConversation
from lopen.tools.running import runs_again
from lopen.workflow.pauses import (
    BudgetThreshold,
    Confirmation,
    Pause,
)

# Kinds of pauses after which the conversation goes on where it stopped, an answer in hand or not
CONTINUED = ("interrupted", "endpoint", "budget", "person", "question")
CONTINUING = "continuing iteration"
FILES_NAMED = 20
TICK_NS = 20_000_000  # the file system's clock may be this far behind the one of the stored entries


def continues(pause: Pause) -> bool:
    """Return True if the conversation goes on where the pause stopped it."""
    spent = isinstance(pause, Confirmation) and isinstance(pause.reason, BudgetThreshold)
    return spent or pause.kind in CONTINUED


def continue_conversation(context: SessionContext, stored: StoredConversation) -> Conversation:
    """Continue the stored conversation at the turn where it stopped."""
    context.models.calls.connect()  # run nothing for a model that cannot be asked
    session = context.record.journal.session
    open_budget(context, session)
    tools = tuple(tool.spec for tool in context.registry.offered(session.step))
    bench, registry = bench_for(context), context.registry
    workspace = context.project.workspace
    found = rebuilt(
        stored, tools, lambda use, started: runs_again(registry.get(use.name), use, started, workspace)
    )
    bench.evidence.restore(found.evidence)
    told = "\n".join((*(block.text for block in found.request.system), *texts(found)))
    due = (*session.dialogue.notes, *session.dialogue.corrections)
    new = [note for note in due if note not in told]
    # The model knows the assumptions that it made in this conversation.
    own = f"{session.task.id}: " if session.task else "\n"
    decided = [bullet(each) for each in decisions(session) if each not in told and not each.startswith(own)]
    new += ["\n".join((f"{DECIDED}, new since this conversation began:", *decided))] if decided else []
    if BUDGET_EXTENDED in new:
        new.append(context.guards.meter.snapshot())
    stopped = interruption(found, changed_files(context, stored))
    notice = "\n\n".join(filter(None, (*new, stopped)))
    turn = found.counts.turn + (found.response is None)
    context.record.journal.tell(Notice("detail", f"{CONTINUING} {session.limits.iterations} in turn {turn}"))
    return conversation_of(context, bench, found.request, list(found.messages), replace(found, notice=notice))


def texts(found: Resumed) -> Iterator[str]:
    """Yield the texts that lopen sent in the conversation."""
    for message in found.messages:
        if message["role"] == "user":
            yield from (block["text"] for block in message["content"] if block["type"] == "text")


def changed_files(context: SessionContext, stored: StoredConversation) -> tuple[str, ...]:
    """Return the project's files that changed after the last stored step, and the files it wrote that are gone."""
    root = context.project.root
    own = f"specs/{context.record.journal.session.module}/"
    found, written = [], set(_written(stored))
    for path in context.project.workspace.list_files().files:
        try:
            since = stored.at_ns - (0 if path in written else TICK_NS)
            changed = (root / path).lstat().st_mtime_ns > since
        except OSError:
            continue
        if changed and not path.startswith(own):
            found.append(path)
    gone = [p for p in sorted(written) if not (root / p).exists()]
    return (*found, *(f"{path} (deleted)" for path in gone))


def _written(stored: StoredConversation) -> Iterator[str]:
    done = {e.body["id"] for e in stored.entries if e.kind == "result" and e.body.get("ok")}
    for entry in stored.entries:
        for use in entry.body["uses"] if entry.kind == "assistant" else ():
            if use["name"] in ("write_file", "edit_file") and use["id"] in done:
                yield str((use["input"] or {}).get("path", ""))


def interruption(found: Resumed, changed: Sequence[str]) -> str:
    """Return the line that tells the model which files changed while the run stood still; empty where none did.

    A call that was cut off is answered for itself.
    """
    if not changed:
        return ""
    uses = found.response.tool_uses if found.response is not None else ()
    cut_off = ", ".join(use.name for use in uses if use.id in found.cut_off)
    by = f" (perhaps by {cut_off}, which was cut off)" if cut_off else ""
    more = f" and {len(changed) - FILES_NAMED} more" if len(changed) > FILES_NAMED else ""
    return (
        f"The run was interrupted and goes on. Files that changed in between{by}: "
        f"{', '.join(changed[:FILES_NAMED])}{more}. Read them again before you rely on what you saw of them."
    )
