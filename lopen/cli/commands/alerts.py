"""`lopen alerts`: show and acknowledge alerts."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.open_store import opened_limits, tell
from lopen.cli.command import command, group
from lopen.core.errors import ExitCode

app = group("Alerts of budgets, circuits and protected paths.", default="list")
AlertId = Annotated[str, typer.Argument(help="Alert id as `lopen alerts` shows it, or `all`.")]
BudgetOption = Annotated[str | None, typer.Option("--budget", help="Only alerts of this budget.")]
AllOption = Annotated[bool, typer.Option("--all/--new", help="Also acknowledged alerts.")]


@app.command("list")
@command
def listing(context: CommandContext, budget: BudgetOption = None, every: AllOption = False) -> ExitCode:
    """List new alerts, oldest first; with --all the acknowledged ones too."""
    from lopen.limits import report

    with opened_limits(context) as (store, _):
        alerts = store.alerts(budget, None if every else False)
    for alert in alerts:
        context.emit("alert", **report.alert_object(alert))
    none = ["No alerts."] if every else ["No new alerts; lopen alerts list --all shows acknowledged ones."]
    tell(context, report.alert_lines(alerts) or none)
    return ExitCode.OK


@app.command()
@command
def ack(context: CommandContext, alert_id: AlertId) -> ExitCode:
    """Acknowledge an alert, or all of them."""
    from lopen.application.decisions import require_person
    from lopen.limits import admin_actions, report

    require_person("alerts ack", context.root)
    with opened_limits(context) as (store, _):
        wanted = [a.alert_id for a in store.alerts(acknowledged=False)] if alert_id == "all" else [alert_id]
        alerts = [admin_actions.acknowledge_alert(store, each) for each in wanted]
    for alert in alerts:
        context.emit("alert_acknowledged", **report.alert_object(alert))
    tell(context, report.alert_lines(alerts) or ["No new alerts."])
    return ExitCode.OK
