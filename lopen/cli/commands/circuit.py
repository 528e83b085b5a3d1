"""`lopen circuit`: show circuits, and let a person acknowledge or reset one."""

from __future__ import annotations

from typing import Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.open_store import no_such, now, opened_limits, resource_limits, rules, tell, the_one
from lopen.cli.command import command, group
from lopen.core.errors import ExitCode

app = group("Circuit breakers.", default="status")
CircuitId = Annotated[str, typer.Argument(help="session:ID")]
OpenCircuit = Annotated[
    str | None,
    typer.Argument(
        help="session:ID; without it, the circuit that waits for a person.",
        show_default=False,
    ),
]
OneCircuit = Annotated[str | None, typer.Argument(help="Only this circuit.", show_default=False)]
OneOwner = Annotated[
    str | None, typer.Argument(help="Only incidents of this circuit or budget.", show_default=False)
]


@app.command()
@command
def status(context: CommandContext, circuit_id: OneCircuit = None) -> ExitCode:
    """Show every circuit, its resources, and the incidents of the last 24 hours."""
    from lopen.application.memory_report import memory_line
    from lopen.limits import report
    from lopen.limits.agents import read_agents
    from lopen.limits.circuits import cooled

    with opened_limits(context) as (store, settings):
        at = now().timestamp()
        states = [cooled(c, at) for c in store.circuits() if circuit_id in (None, c.circuit_id)]
        if circuit_id is not None and not states:
            raise no_such("circuit", circuit_id)
        happened = store.incidents(circuit_id)
        agents = store.atomically(lambda rows: [read_agents(rows, s.circuit_id) for s in states])
    present, limits = now(), resource_limits(settings)
    book = rules(settings)
    rate = book["external_api"].threshold
    lines = ["Circuit breakers"] if states else ["No circuits yet."]
    for state, theirs in zip(states, agents, strict=True):
        own = [i for i in happened if i.circuit_id == state.circuit_id]
        resources = report.resource_object(theirs, state, limits, present)
        counts = report.incident_counts(own, present)
        context.emit(
            "circuit", **report.circuit_object(state, book), resources=resources, incidents_24h=counts
        )
        lines += report.circuit_lines(state, book, present)
        lines += report.resource_lines(theirs, state, limits, present, rate)
    memory = memory_line(context.root / ".lopen")
    tell(context, [*lines, memory, *report.incident_lines(happened, present)])
    return ExitCode.OK


@app.command()
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
    tell(context, report.incident_log(found) or ["No incidents."])
    return ExitCode.OK


@app.command()
@command
def ack(context: CommandContext, circuit_id: OpenCircuit = None) -> ExitCode:
    """Let one call through; its success lets the others follow. Only a person may run this."""
    from lopen.application.decisions import require_person
    from lopen.limits import admin_actions, report

    require_person("circuit ack", context.root)
    with opened_limits(context) as (store, settings):
        waiting = [c.circuit_id for c in store.circuits() if c.tripped and c.needs_ack]
        circuit_id = circuit_id or the_one("circuit", waiting)
        state = admin_actions.acknowledge_circuit(store, circuit_id, now())
    resume = _resume_line(context, circuit_id)
    context.emit("circuit_acknowledged", **report.circuit_object(state, rules(settings)))
    nothing = [] if state.state == "half_open" else ["Nothing is paused: there is nothing to acknowledge."]
    tell(context, [*nothing, *report.circuit_lines(state, rules(settings), now()), *resume])
    return ExitCode.OK


@app.command()
@command
def reset(context: CommandContext, circuit_id: CircuitId) -> ExitCode:
    """Let calls through again and reset the counters. Only a person may run this."""
    from lopen.application.decisions import require_person
    from lopen.limits import admin_actions, report

    require_person("circuit reset", context.root)
    with opened_limits(context) as (store, settings):
        state = admin_actions.reset_circuit(store, circuit_id, now())
    resume = _resume_line(context, circuit_id)
    context.emit("circuit_reset", **report.circuit_object(state, rules(settings)))
    tell(context, [*report.circuit_lines(state, rules(settings), now()), *resume])
    return ExitCode.OK


def _resume_line(context: CommandContext, circuit_id: str) -> list[str]:
    """Clear the session's pause for this circuit; return the line that names the next command, if there is one."""
    from lopen.application.decisions import release_circuit
    from lopen.application.open_store import open_store

    store = open_store(context)
    try:
        released = release_circuit(context, store, circuit_id)
    finally:
        store.database.close()
    return [f"next: lopen resume {released}"] if released else []
