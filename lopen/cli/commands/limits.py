"""`lopen budget`, `circuit` and `alerts`: show them, and let a person extend, acknowledge or reset one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.open_store import no_such, now, opened_limits, resource_limits, rules, the_one
from lopen.cli.command import command, group
from lopen.cli.parameters import NO_REASON, ReasonOption
from lopen.core.errors import ExitCode, WrongUsage

if TYPE_CHECKING:
    from lopen.store.sessions import SessionStore

GRANTED = ("extension", "reset")
budgets = group("Token budgets of modules, sessions and tasks.", default="show")
circuits = group("Circuit breakers.", default="status")
alerts = group("Alerts of budgets, circuits and protected paths.", default="list")


def _argument(help_text: str) -> typer.models.ArgumentInfo:
    found: typer.models.ArgumentInfo = typer.Argument(help=help_text, show_default=False)
    return found


BudgetId = Annotated[str, _argument("module:NAME, session:ID or task:ID")]
PausedBudget = Annotated[
    str | None, _argument("module:NAME, session:ID or task:ID; without it, the budget that is used up.")
]
OneBudget = Annotated[str | None, _argument("Only this budget.")]
TokensArgument = Annotated[int | None, _argument("Additional tokens, 1 to 1,000,000.")]
TokensOption = Annotated[
    int | None, typer.Option("--tokens", metavar="N", help="Additional tokens, as an option.")
]
CircuitId = Annotated[str, _argument("session:ID")]
OpenCircuit = Annotated[str | None, _argument("session:ID; without it, the circuit that waits for a person.")]
OneCircuit = Annotated[str | None, _argument("Only this circuit.")]
OneOwner = Annotated[str | None, _argument("Only incidents of this circuit or budget.")]
AlertId = Annotated[str, _argument("Alert id as `lopen alerts` shows it, or `all`.")]
BudgetOption = Annotated[str | None, typer.Option("--budget", help="Only alerts of this budget.")]
AllOption = Annotated[bool, typer.Option("--all/--new", help="Also acknowledged alerts.")]


@budgets.command("show")
@command
def show_budgets(context: CommandContext, budget_id: OneBudget = None) -> ExitCode:
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
    context.say("\n".join([*report.budget_lines(states), *report.incident_log(granted)]))
    return ExitCode.OK


@budgets.command("extend")
@command
def extend_budget(
    context: CommandContext,
    budget_id: PausedBudget = None,
    tokens: TokensArgument = None,
    given: TokensOption = None,
    reason: ReasonOption = NO_REASON,
) -> ExitCode:
    """Grant a budget more tokens. Only a person may run this."""
    from lopen.application.decisions import release_budget
    from lopen.limits import admin_actions, report

    granted = tokens if given is None else given
    if granted is None:
        raise WrongUsage("missing number of tokens", hint="for example: lopen budget extend --tokens 100000")
    with opened_limits(context) as (store, _):
        budget_id = budget_id or the_one("budget", [b.budget_id for b in store.budgets() if b.stopped])
        state = admin_actions.extend_budget(store, budget_id, granted, reason, now())
    context.emit("budget_extended", reason=reason, additional_tokens=granted, **report.budget_object(state))
    context.say("\n".join(report.budget_lines([state]) + _released(context, release_budget, budget_id)))
    return ExitCode.OK


@budgets.command("reset")
@command
def reset_budget(context: CommandContext, budget_id: BudgetId) -> ExitCode:
    """Set the usage of a budget to zero. Only a person may run this."""
    from lopen.application.decisions import release_budget
    from lopen.limits import admin_actions, report

    with opened_limits(context) as (store, _):
        state = admin_actions.reset_budget(store, budget_id, now())
    context.emit("budget_reset", **report.budget_object(state))
    context.say("\n".join(report.budget_lines([state]) + _released(context, release_budget, budget_id)))
    return ExitCode.OK


@circuits.command("status")
@command
def show_circuits(context: CommandContext, circuit_id: OneCircuit = None) -> ExitCode:
    """Show every circuit, its resources, and the incidents of the last 24 hours."""
    from lopen.limits import report
    from lopen.limits.agents import read_agents
    from lopen.limits.circuits import cooled
    from lopen.store.upkeep import memory_line

    present = now()
    with opened_limits(context) as (store, settings):
        states = [
            cooled(c, present.timestamp()) for c in store.circuits() if circuit_id in (None, c.circuit_id)
        ]
        if circuit_id is not None and not states:
            raise no_such("circuit", circuit_id)
        happened = store.incidents(circuit_id)
        agents = store.atomically(lambda rows: [read_agents(rows, s.circuit_id) for s in states])
    limits, book = resource_limits(settings), rules(settings)
    lines = ["Circuit breakers"] if states else ["No circuits yet."]
    for state, theirs in zip(states, agents, strict=True):
        own = [i for i in happened if i.circuit_id == state.circuit_id]
        resources = report.resource_object(theirs, state, limits, present)
        context.emit(
            "circuit",
            **report.circuit_object(state, book),
            resources=resources,
            incidents_24h=report.incident_counts(own, present),
        )
        lines += report.circuit_lines(state, book, present)
        lines += report.resource_lines(resources, book["external_api"].threshold)
    memory = memory_line(context.root / ".lopen")
    context.say("\n".join([*lines, memory, report.incident_line(report.incident_counts(happened, present))]))
    return ExitCode.OK


@circuits.command()
@command
def incidents(context: CommandContext, circuit_id: OneOwner = None) -> ExitCode:
    """List incidents, oldest first: trips, extensions, overrides, acknowledgements and resets with reasons."""
    from lopen.limits import report

    with opened_limits(context) as (store, _):
        found = store.incidents(circuit_id)
        owners = {*(c.circuit_id for c in store.circuits()), *(b.budget_id for b in store.budgets())}
    if circuit_id is not None and not found and circuit_id not in owners:
        raise no_such("circuit", circuit_id)
    for incident in found:
        context.emit("incident", **report.incident_object(incident))
    context.say("\n".join(report.incident_log(found) or ["No incidents."]))
    return ExitCode.OK


@circuits.command("ack")
@command
def acknowledge_circuit(context: CommandContext, circuit_id: OpenCircuit = None) -> ExitCode:
    """Let one call through; its success lets the others follow. Only a person may run this."""
    from lopen.application.decisions import release_circuit
    from lopen.limits import admin_actions, report

    with opened_limits(context) as (store, settings):
        waiting = [c.circuit_id for c in store.circuits() if c.tripped and c.needs_ack]
        circuit_id = circuit_id or the_one("circuit", waiting)
        state = admin_actions.acknowledge_circuit(store, circuit_id, now())
    context.emit("circuit_acknowledged", **report.circuit_object(state, rules(settings)))
    nothing = [] if state.state == "half_open" else ["Nothing is paused: there is nothing to acknowledge."]
    lines = report.circuit_lines(state, rules(settings), now())
    context.say("\n".join(nothing + lines + _released(context, release_circuit, circuit_id)))
    return ExitCode.OK


@circuits.command("reset")
@command
def reset_circuit(context: CommandContext, circuit_id: CircuitId) -> ExitCode:
    """Let calls through again and reset the counters. Only a person may run this."""
    from lopen.application.decisions import release_circuit
    from lopen.limits import admin_actions, report

    with opened_limits(context) as (store, settings):
        state = admin_actions.reset_circuit(store, circuit_id, now())
    context.emit("circuit_reset", **report.circuit_object(state, rules(settings)))
    lines = report.circuit_lines(state, rules(settings), now())
    context.say("\n".join(lines + _released(context, release_circuit, circuit_id)))
    return ExitCode.OK


def _released(
    context: CommandContext, release: Callable[[CommandContext, SessionStore, str], str], owner: str
) -> list[str]:
    """Let the session that waits for the budget or circuit go on; return the line with the next command, if there is one."""
    from lopen.application.open_store import open_store

    store = open_store(context)
    try:
        released = release(context, store, owner)
    finally:
        store.database.close()
    return [f"next: lopen resume {released}"] if released else []


@alerts.command("list")
@command
def list_alerts(context: CommandContext, budget: BudgetOption = None, every: AllOption = False) -> ExitCode:
    """List new alerts, oldest first; with --all the acknowledged ones too."""
    from lopen.limits import report

    with opened_limits(context) as (store, _):
        found = store.alerts(budget, None if every else False)
    for alert in found:
        context.emit("alert", **report.alert_object(alert))
    none = ["No alerts."] if every else ["No new alerts; lopen alerts list --all shows acknowledged ones."]
    context.say("\n".join(report.alert_lines(found) or none))
    return ExitCode.OK


@alerts.command("ack")
@command
def acknowledge_alert(context: CommandContext, alert_id: AlertId) -> ExitCode:
    """Acknowledge an alert, or all of them."""
    from lopen.limits import admin_actions, report

    with opened_limits(context) as (store, _):
        wanted = [a.alert_id for a in store.alerts(acknowledged=False)] if alert_id == "all" else [alert_id]
        found = [admin_actions.acknowledge_alert(store, each) for each in wanted]
    for alert in found:
        context.emit("alert_acknowledged", **report.alert_object(alert))
    context.say("\n".join(report.alert_lines(found) or ["No new alerts."]))
    return ExitCode.OK
