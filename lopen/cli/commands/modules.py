"""`lopen modules`: list modules with state, progress, tokens and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.core.errors import ExitCode

if TYPE_CHECKING:
    from lopen.store.sessions import SessionStore


@command
def modules(context: CommandContext) -> ExitCode:
    """List every module that has a specification, with its progress."""
    from lopen.application.open_store import looked_up, open_store
    from lopen.application.reports import module_object
    from lopen.core.money import cost_text
    from lopen.specification.modules import find_modules

    store = open_store(context)
    limits = looked_up(context, store.database)
    budgets = {b.budget_id: b for b in limits.budgets}
    names = find_modules(context.root)
    for name in names:
        found = module_object(context.root, store, name, budgets.get(f"module:{name}"))
        spent = f"{found['tokens']:,} tokens, {cost_text(found['cost_usd'], found['unpriced_tokens'])}"
        if limits.unknown:
            found |= dict.fromkeys(("tokens", "cost_usd", "unpriced_tokens"))
        context.emit("module", **found)
        done = f"{found['tasks_done']}/{found['tasks']} tasks" if found["tasks"] else "no tasks yet"
        context.say(f"{name}: {found['state']}, {done}, {'tokens unknown' if limits.unknown else spent}")
    if names and limits.lines:
        context.say(limits.lines[0])
    if not names:
        context.say("no modules yet; to start one: lopen init MODULE")
    return ExitCode.OK


def tell_modules(context: CommandContext, store: SessionStore) -> None:
    """Show what there is without a session: the specified modules, or that there is no project."""
    from lopen.application.command_context import is_root
    from lopen.specification.modules import find_modules

    approved = {name: store.approval(name) is not None for name in find_modules(context.root)}
    states = {name: "approved" if given else "specified" for name, given in approved.items()}
    is_project = bool(states) or is_root(context.root)
    context.emit("no_sessions", is_project=is_project, modules=states)
    if not is_project:
        context.say("there is no project here; to start one: lopen init")
        return
    for name, state in states.items():
        context.say(f"{name}: {state}, no session yet")
    context.say("no sessions yet; to start one: lopen run MODULE")
