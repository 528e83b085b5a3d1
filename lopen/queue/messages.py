"""A person's commands on a build that runs elsewhere: sent by the queue, taken up where the build is.

Who holds the queue's credentials may do what a person of the project may, so a message counts as a person's word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

from lopen.application import decisions
from lopen.application.command_context import CommandContext
from lopen.application.open_store import now, open_store, opened_limits
from lopen.core.errors import LopenError
from lopen.limits.admin_actions import extend_budget
from lopen.limits.budget import GROUP
from lopen.queue.group_budget import group_limits
from lopen.queue.opening import OpenQueue, open_queue
from lopen.queue.shared import SharedQueue
from lopen.store.sessions import SessionStore
from lopen.workflow.session import Session

Act = Callable[[CommandContext, SessionStore, Session, Sequence[str]], object]


def _extend(context: CommandContext, store: SessionStore, session: Session, words: Sequence[str]) -> None:
    if int(words[1]):  # a group's is extended in the queue
        with opened_limits(context) as (limits, _):
            extend_budget(limits, words[0], int(words[1]), words[2], now())
    decisions.release_budget(context, store, words[0])


# What each command does with its words. Only these are taken up while the build runs: the others wait for its end.
WHILE_RUNNING = ("pause", "skip", "tell", "answer")
ACTS: Mapping[str, Act] = {
    "pause": lambda context, store, session, _: decisions.ask_to_pause(context, store, session.id),
    "skip": lambda context, store, _, words: decisions.skip(
        context, store, words[0], words[1], keep=words[2] == "keep"
    ),
    "tell": lambda context, store, session, words: decisions.tell(context, store, session.id, words[0]),
    "answer": lambda context, store, session, words: decisions.answer(context, store, session.id, words[0]),
    "confirm": lambda context, store, session, words: decisions.confirm(context, store, session.id, words[0]),
    "budget extend": _extend,
}


def take_up(context: CommandContext, queue: SharedQueue, module: str, *, running: bool) -> None:
    """Take up the messages for a module that can have their effect now."""
    for number, (command, *words) in queue.messages(module):
        if command in WHILE_RUNNING or not running:
            act(context, module, command, *words)
            queue.taken_up(module, number)


def act(context: CommandContext, module: str, command: str, *words: str) -> None:
    """Do what a command asks; nothing where the session is in another state than the person saw."""
    store = open_store(context)
    with closing(store.database), suppress(LopenError):
        if command in ACTS and (session := store.latest(module=module)) is not None:
            ACTS[command](context, store, session, words)


def sent(context: CommandContext, command: str, options: Mapping[str, Any]) -> bool:
    """Send a person's command to the build it is for, if the queue has that build and this machine does not."""
    named = next((v for k in ("wanted", "session", "task", "budget_id") if (v := options.get(k))), None)
    if not named or (command in ("answer", "tell") and not options.get("words")):
        return False
    queue = open_queue(context)
    try:
        if str(named).startswith(f"{GROUP}:"):
            return _extended_group(context, queue, str(named), options)
        name = str(named).rpartition(":")[2]
        orders = [
            p
            for p in queue.shared.placed()
            if name == p.order.module or name.startswith(f"{p.order.module}-")
        ]
        placed = max(orders, key=lambda p: len(p.order.module), default=None)
        if placed is None:
            return False
        module = placed.order.module
        if open_store(context).latest(module=module, unfinished=True) is not None:
            return False
        queue.shared.send(module, [command, *_words(command, options)])
        if placed.state in ("waits", "failed") and command != "pause":
            queue.shared.wait_again(module)
            queue.begin_ready()
            context.say(f"sent: the worker that takes {module} up next has it, and goes on")
        else:
            context.say(f"sent to the worker that builds {module} ({placed.worker or 'none yet'})")
        context.emit("sent", module=module, command=command)
        return True
    finally:
        queue.close()


def _extended_group(
    context: CommandContext, queue: OpenQueue, budget_id: str, options: Mapping[str, Any]
) -> bool:
    """Extend the budget of builds that were ordered together, and let those that wait for it go on."""
    group = budget_id.partition(":")[2]
    waiting = [p for p in queue.shared.placed() if p.order.group == group and p.state != "complete"]
    if not waiting:
        return False
    _, tokens, reason = _words("budget extend", options)
    settings, database = context.load().settings, open_store(context, new=True).database
    limits = group_limits(settings, database, queue.shared, group)
    extend_budget(limits, budget_id, int(tokens), reason, now())
    for module in (p.order.module for p in waiting if budget_id in str(p.told.get("command"))):
        queue.shared.send(module, ["budget extend", budget_id, "0", ""])
        queue.shared.wait_again(module)
        context.emit("sent", module=module, command="budget extend")
    queue.begin_ready()
    context.say(f"extended {budget_id} by {int(tokens):,} tokens; the builds that wait for it go on")
    return True


def _words(command: str, options: Mapping[str, Any]) -> list[str]:
    match command:
        case "answer" | "tell":
            return [" ".join(options["words"])]
        case "confirm":
            return [str(options["note"])]
        case "skip":
            return [str(options["task"]), str(options["reason"]), "keep" if options.get("keep") else ""]
        case "budget extend":
            tokens = options.get("given") or options.get("tokens") or 0
            return [str(options["budget_id"]), str(tokens), str(options["reason"])]
        case _:
            return []
