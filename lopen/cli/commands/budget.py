"""`lopen budget`: show budgets, and let a person extend or reset one."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.open_store import no_such, now, opened_limits, tell, the_one
from lopen.cli.command import command, group
from lopen.cli.parameters import NO_REASON, ReasonOption
from lopen.core.errors import ExitCode, WrongUsage

GRANTED = ("extension", "reset")
app = group("Token budgets of modules, sessions and tasks.", default="show")
BudgetId = Annotated[str, typer.Argument(help="module:NAME, session:ID or task:ID")]
PausedBudget = Annotated[
    str | None,
    typer.Argument(
        help="module:NAME, session:ID or task:ID; without it, the budget that is used up.",
        show_default=False,
    ),
]
OneBudget = Annotated[str | None, typer.Argument(help="Only this budget.", show_default=False)]
TokensArgument = Annotated[
    int | None, typer.Argument(help="Additional tokens, 1 to 1,000,000.", show_default=False)
]
TokensOption = Annotated[
    int | None, typer.Option("--tokens", metavar="N", help="Additional tokens, as an option.")
]


@app.command()
@command
def show(context: CommandContext, budget_id: OneBudget = None) -> ExitCode:
    """Show budgets with usage, status and cost; for a single budget also its extensions and their reasons."""
    from lopen.limits import report

    with opened_limits(context) as (store, _):
        states = store.budgets(budget_id)
        if budget_id is not None and not states:
            raise no_such("budget", budget_id)
        granted = [i for i in store.incidents(budget_id) if i.rule in GRANTED] if budget_id else []
    for state in states:
        context.emit("budget", **report.budget_object(state))
    for incident in granted:
        context.emit("incident", **report.incident_object(incident))
    tell(context, [*report.budget_lines(states), *report.incident_log(granted)])
    return ExitCode.OK


@app.command()
@command
def extend(
    context: CommandContext,
    budget_id: PausedBudget = None,
    tokens: TokensArgument = None,
    given: TokensOption = None,
    reason: ReasonOption = NO_REASON,
) -> ExitCode:
    """Grant a budget more tokens. Only a person may run this."""
    from lopen.application.decisions import require_person
    from lopen.limits import admin_actions, report

    require_person("budget extend", context.root)
    granted = tokens if given is None else given
    if granted is None:
        raise WrongUsage(
            "missing number of tokens",
            hint="for example: lopen budget extend --tokens 100000",
        )
    with opened_limits(context) as (store, _):
        budget_id = budget_id or the_one("budget", [b.budget_id for b in store.budgets() if b.stopped])
        state = admin_actions.extend_budget(store, budget_id, granted, reason, now())
    resume = _resume_line(context, budget_id)
    context.emit("budget_extended", reason=reason, additional_tokens=granted, **report.budget_object(state))
    tell(context, [*report.budget_lines([state]), *resume])
    return ExitCode.OK


@app.command()
@command
def reset(context: CommandContext, budget_id: BudgetId) -> ExitCode:
    """Set the usage of a budget to zero. Only a person may run this."""
    from lopen.application.decisions import require_person
    from lopen.limits import admin_actions, report

    require_person("budget reset", context.root)
    with opened_limits(context) as (store, _):
        state = admin_actions.reset_budget(store, budget_id, now())
    resume = _resume_line(context, budget_id)
    context.emit("budget_reset", **report.budget_object(state))
    tell(context, [*report.budget_lines([state]), *resume])
    return ExitCode.OK


def _resume_line(context: CommandContext, budget_id: str) -> list[str]:
    """Let the session that waits for this budget go on; return the line that names the next command, if there is one."""
    from lopen.application.decisions import release_budget
    from lopen.application.open_store import open_store

    store = open_store(context)
    try:
        released = release_budget(context, store, budget_id)
    finally:
        store.database.close()
    return [f"next: lopen resume {released}"] if released else []
