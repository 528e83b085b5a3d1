"""A person's commands on a build that runs elsewhere: sent by the queue, taken up where the build is.

Who holds the queue's credentials may do what a person of the project may, so a message counts as a person's word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from lopen.application import decisions
from lopen.application.command_context import CommandContext
from lopen.application.open_store import now, open_store, opened_limits
from lopen.core.errors import LopenError
from lopen.limits.admin_actions import extend_budget
from lopen.queue.shared import SharedQueue
from lopen.store.sessions import SessionStore

Act = Callable[[CommandContext, SessionStore, Sequence[str]], object]


def _extend(context: CommandContext, store: SessionStore, words: Sequence[str]) -> None:
    with opened_limits(context) as (limits, _):
        state = extend_budget(limits, words[0], int(words[1]), words[2], now())
    decisions.release_budget(context, store, state.budget_id)


# command → what it does; the first word after it is the session, a task or a budget
RUNNING: Mapping[str, Act] = {
    "pause": lambda context, store, words: decisions.ask_to_pause(context, store, words[0]),
    "skip": lambda context, store, words: decisions.skip(context, store, words[0], words[1]),
}
STANDING: Mapping[str, Act] = {
    "answer": lambda context, store, words: decisions.answer(context, store, words[0], words[1]),
    "confirm": lambda context, store, words: decisions.confirm(context, store, words[0], words[1]),
    "skip": RUNNING["skip"],
    "extend": _extend,
}


def take_up(context: CommandContext, queue: SharedQueue, module: str, *, running: bool) -> None:
    """Take up the messages for a module that can have their effect now; a command that cannot is dropped."""
    table = RUNNING if running else STANDING
    for number, (command, *words) in queue.messages(module):
        act = table.get(command)
        if act is None and running:
            continue  # when it stands still
        if act is not None:
            store = open_store(context)
            try:
                with suppress(LopenError):  # of another state than the person saw
                    act(context, store, words)
            finally:
                store.database.close()
        queue.taken_up(module, number)
