"""`lopen modules`: list modules with state, progress, tokens and cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.core.errors import ExitCode
from lopen.workflow.next_step import displayed_step

if TYPE_CHECKING:
    from lopen.store.sessions import SessionStore


@command
def modules(context: CommandContext) -> ExitCode:
    """List every module that has a specification, with its progress."""
    from lopen.application.limits import looked_up
    from lopen.application.open_store import open_store, store_of
    from lopen.application.session_report import shown_status
    from lopen.core.money import cost_text
    from lopen.specification.modules import find_modules
    from lopen.workflow.task_tree import progress

    store = open_store(context)
    limits = looked_up(context, store.database)
    budgets = {b.budget_id: b for b in limits.budgets}
    names = find_modules(context.root)
    for name in names:
        session = store_of(store, name).latest(module=name)
        approved = store.approval(name) is not None
        state = shown_status(context.root, session) if session else ("approved" if approved else "specified")
        done = progress(session.tree) if session else None
        budget = budgets.get(f"module:{name}")
        used = {"tokens": 0, "cost_usd": 0.0, "unpriced_tokens": 0}
        if budget is not None:
            counts = (budget.tokens_used, budget.cost_usd, budget.unpriced_tokens)
            used = dict(zip(used, counts, strict=True))
        spent = f"{used['tokens']:,} tokens, {cost_text(used['cost_usd'], int(used['unpriced_tokens']))}"
        context.emit(
            "module",
            session=session.id if session else "",
            module=name,
            state=state,
            step=displayed_step(session).value if session else None,
            tasks_done=done.tasks_done if done else 0,
            tasks=done.tasks if done else 0,
            **(dict.fromkeys(used) if limits.unknown else used),
        )
        counted = f"{done.tasks_done}/{done.tasks} tasks" if done and done.tasks else "no tasks yet"
        context.say(f"{name}: {state}, {counted}, {'tokens unknown' if limits.unknown else spent}")
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
