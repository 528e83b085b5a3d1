"""A person's commands on a build that runs elsewhere: sent by the queue, taken up where the build is.

Who holds the queue's credentials may do what a person of the project may, so a message counts as a person's word.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from lopen.application import decisions
from lopen.application.command_context import CommandContext
from lopen.application.open_store import now, open_store, opened_limits
from lopen.core.clock import SystemClock
from lopen.core.errors import LopenError
from lopen.core.events import Notice
from lopen.limits.admin_actions import extend_budget
from lopen.limits.budget import GROUP
from lopen.queue.group_budget import group_limits
from lopen.queue.opening import OpenQueue, kept_sessions, open_queue
from lopen.queue.shared import SharedQueue
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.store.journal import Journal
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.session import Session

Given = Mapping[str, Any]  # the options of a command
Act = Callable[[CommandContext, SessionStore, Session, Given], object]


def _extend(context: CommandContext, store: SessionStore, session: Session, given: Given) -> None:
    if tokens := _tokens(given):  # a group's is extended in the queue
        with opened_limits(context) as (limits, _):
            extend_budget(limits, given["budget_id"], tokens, given["reason"], now())
    decisions.release_budget(context, store, given["budget_id"])


def _tokens(given: Given) -> int:
    return int(given.get("given") or given.get("tokens") or 0)


# What each command does with its options. Only these are taken up while the build runs: the others wait for its end.
WHILE_RUNNING = ("pause", "skip", "tell", "answer")
ACTS: Mapping[str, Act] = {
    "pause": lambda context, store, own, given: decisions.ask_to_pause(
        context, store, own.id, given.get("why", "")
    ),
    "skip": lambda context, store, _, given: decisions.skip(
        context, store, given["task"], given["reason"], keep=given["keep"]
    ),
    "tell": lambda context, store, own, given: decisions.tell(
        context, store, own.id, " ".join(given["words"])
    ),
    "answer": lambda context, store, own, given: decisions.answer(
        context, store, own.id, " ".join(given["words"])
    ),
    "confirm": lambda context, store, own, given: decisions.confirm(context, store, own.id, given["note"]),
    "budget extend": _extend,
}
# What the sender does with the sessions of the last checkpoint: it raises where the command would have no effect.
CHECKS: Mapping[str, Act] = {
    "skip": lambda _, _store, own, given: changes.skip_task(own, given["task"], given["reason"]),
    "tell": ACTS["tell"],
    "answer": ACTS["answer"],
    "confirm": lambda _, _store, own, given: changes.confirm_pause(own, given["note"]),
}


def take_up(context: CommandContext, queue: SharedQueue, module: str, *, running: bool) -> None:
    """Take up the messages for a module that can have their effect now."""
    for number, command, given in queue.messages(module):
        if command in WHILE_RUNNING or not running:
            act(context, module, command, given)
            queue.taken_up(module, number)


def act(context: CommandContext, module: str, command: str, given: Given) -> None:
    """Do what a command asks; tell it in the log where the session is in another state than the person saw."""
    store = open_store(context)
    with closing(store.database):
        session = store.latest(module=module)
        if session is None or command not in ACTS:
            return
        try:
            ACTS[command](context, store, session, given)
        except LopenError as error:
            if "why" in given:  # no person asks: the worker does, again and again
                return
            notice = Notice("warning", f"lopen {command} had no effect: {error.message}")
            secrets = KnownSecrets(context.root, os.environ)
            Journal(store, session, SystemClock(), redact=secrets.redact).tell(notice)


def sent(context: CommandContext, command: str, options: Given) -> bool:
    """Send a person's command to the build it is for, if the queue has that build and this machine does not.

    Raises:
        LopenError: the command cannot have an effect.
    """
    named = next((str(v) for k in ("wanted", "session", "task", "budget_id") if (v := options.get(k))), None)
    if not named or (command in ("answer", "tell") and not options.get("words")):
        return False
    with closing(open_queue(context)) as queue:
        if named.startswith(f"{GROUP}:"):
            return _extended_group(context, queue, named, options)
        name, every = named.rpartition(":")[2], queue.shared.placed()
        orders = [p for p in every if f"{name}-".startswith(f"{p.order.module}-")]
        placed = max(orders, key=lambda p: len(p.order.module), default=None)
        if placed is None:
            return False
        module = placed.order.module
        if open_store(context).latest(module=module, unfinished=True) is not None:
            return False
        kept = kept_sessions(context, module)
        if kept is None or (session := kept.latest(module=module)) is None:
            raise LopenError(f"{module} has not begun: it is {placed.state}", hint="lopen queue list")
        if command == "pause" and placed.state != "running":
            raise LopenError(f"{session.id} is not running: it is {placed.state}", hint="lopen queue list")
        if command in CHECKS:
            CHECKS[command](context, kept, session, options)
        queue.shared.send(module, command, options)
        if placed.state in ("waits", "failed"):
            queue.shared.wait_again(module)
            queue.begin_ready()
            context.say(f"sent: the worker that takes {module} up next has it, and goes on")
        else:
            context.say(f"sent to the worker that builds {module} ({placed.worker or 'none yet'})")
        context.emit("sent", module=module, command=command)
        return True


def _extended_group(context: CommandContext, queue: OpenQueue, budget_id: str, options: Given) -> bool:
    """Extend the budget of builds that were ordered together, and let those that wait for it go on."""
    group = budget_id.partition(":")[2]
    waiting = [p for p in queue.shared.placed() if p.order.group == group and p.state != "complete"]
    if not waiting:
        return False
    tokens = _tokens(options)
    settings, database = context.load().settings, open_store(context, new=True).database
    limits = group_limits(settings, database, queue.shared, group)
    extend_budget(limits, budget_id, tokens, options["reason"], now())
    for module in (p.order.module for p in waiting if budget_id in str(p.told.get("command"))):
        queue.shared.send(module, "budget extend", {"budget_id": budget_id})
        queue.shared.wait_again(module)
        context.emit("sent", module=module, command="budget extend")
    queue.begin_ready()
    context.say(f"extended {budget_id} by {tokens:,} tokens; the builds that wait for it go on")
    return True
