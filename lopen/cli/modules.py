"""`lopen modules`: every module, its state, progress, tokens and cost."""

from __future__ import annotations

from lopen.cli.context import CommandContext, command
from lopen.errors import ExitCode


@command
def modules(context: CommandContext) -> ExitCode:
    """Every module that has a specification, and how far it is."""
    from lopen.cli.store import open_store, store_of
    from lopen.documents.spec import find_modules
    from lopen.limits.opening import open_limits
    from lopen.tasks.tree import progress

    store = open_store(context)
    limits = open_limits(context.load().settings.budget, store.database)
    budgets = {b.budget_id: b for b in limits.budgets()}
    names = find_modules(context.root)
    for name in names:
        session = store_of(store, name).latest(module=name)
        approved = store.approval(name) is not None
        state = session.status if session else ("approved" if approved else "specified")
        done = progress(session.tree) if session else None
        budget = budgets.get(f"module:{name}")
        tokens, cost = (budget.tokens_used, budget.cost_usd) if budget else (0, 0.0)
        context.emit(
            "module",
            session=session.id if session else "",
            module=name,
            state=state,
            step=session.step.value if session else None,
            tasks_done=done.tasks_done if done else 0,
            tasks=done.tasks if done else 0,
            tokens=tokens,
            cost_usd=cost,
        )
        counted = f"{done.tasks_done}/{done.tasks} tasks" if done and done.tasks else "no tasks yet"
        context.say(f"{name}: {state}, {counted}, {tokens:,} tokens, ${cost:.4f}")
    if not names:
        context.say("no module yet: write specs/<module>/SPECIFICATION.md, or: lopen run MODULE -p TEXT")
    return ExitCode.OK
