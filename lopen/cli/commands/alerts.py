"""`lopen alerts`: show and acknowledge alerts."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.limits import opened_limits, tell
from lopen.base.errors import ExitCode
from lopen.cli.command import command, group, open_context, with_options
from lopen.cli.parameters import JsonOption, ProjectOption, VerboseOption

app = group("Alerts of budgets, circuits and protected paths.")
AlertId = Annotated[str, typer.Argument(help="Alert id as `lopen alerts` shows it, or `all`.")]
BudgetOption = Annotated[str | None, typer.Option("--budget", help="Only alerts of this budget.")]
NewOption = Annotated[bool, typer.Option("--new/--all", help="Only alerts that are not acknowledged.")]


@app.callback(invoke_without_command=True)
def bare(
    ctx: typer.Context,
    project: ProjectOption = None,
    json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """List new alerts if no subcommand is given."""
    invocation = with_options(ctx, project, json=json, verbose=verbose)
    if ctx.invoked_subcommand is None:
        _list(open_context(invocation), None, new=True)


@app.command("list")
@command
def listing(context: CommandContext, budget: BudgetOption = None, new: NewOption = False) -> ExitCode:
    """List alerts, oldest first; new ones are marked."""
    return _list(context, budget, new=new)


def _list(context: CommandContext, budget: str | None, *, new: bool) -> ExitCode:
    from lopen.limits import report

    with opened_limits(context) as (store, _):
        alerts = store.alerts(budget, False if new else None)
    for alert in alerts:
        context.emit("alert", **report.alert_object(alert))
    none = ["No new alerts; lopen alerts list shows acknowledged ones."] if new else ["No alerts."]
    tell(context, report.alert_lines(alerts) or none)
    return ExitCode.OK


@app.command()
@command
def ack(context: CommandContext, alert_id: AlertId) -> ExitCode:
    """Acknowledge an alert, or all of them."""
    from lopen.application.person_only import require_person
    from lopen.limits import admin_actions, report

    require_person("alerts ack", context.root)
    with opened_limits(context) as (store, _):
        wanted = [a.alert_id for a in store.alerts(acknowledged=False)] if alert_id == "all" else [alert_id]
        alerts = [admin_actions.acknowledge_alert(store, each) for each in wanted]
    for alert in alerts:
        context.emit("alert_acknowledged", **report.alert_object(alert))
    tell(context, report.alert_lines(alerts) or ["No new alerts."])
    return ExitCode.OK
