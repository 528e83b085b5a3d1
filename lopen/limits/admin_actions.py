"""Orders that a person may give: extend and reset budgets, acknowledge and reset circuits, acknowledge alerts.

Commands and the server's pages give these orders; nothing that a model drives does.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lopen.core.errors import LopenError
from lopen.limits.agents import put_agents, read_agents
from lopen.limits.budget import BudgetState, cleared, extended
from lopen.limits.circuits import CircuitState, half_open
from lopen.limits.records import Alert, Incident
from lopen.limits.store import LimitsStore, Rows


class NoSuch(LopenError):
    """There is nothing of that name: no budget, circuit, alert or task, for example."""


def extend_budget(store: LimitsStore, budget_id: str, tokens: int, reason: str, now: datetime) -> BudgetState:
    """Grant `tokens` more (1 to 1,000,000) for a reason, which is kept in the incident log."""

    def work(rows: Rows) -> BudgetState:
        state = extended(_budget(rows, budget_id), tokens, reason, now)
        rows.put_budget(state)
        rows.add_incident(Incident(budget_id, "extension", f"{tokens:,} tokens: {reason.strip()}", now))
        return state

    return store.atomically(work)


def confirm_budget(store: LimitsStore, budget_id: str) -> BudgetState:
    """A person said to go on past the confirmation threshold: for every session of the module, until an extension."""

    def work(rows: Rows) -> BudgetState:
        state = replace(_budget(rows, budget_id), confirmed=True)
        rows.put_budget(state)
        return state

    return store.atomically(work)


def limit_cost(store: LimitsStore, budget_id: str, most_usd: float) -> None:
    """Set the limit on money of a budget, if there is that budget."""

    def work(rows: Rows) -> None:
        if (state := rows.budget(budget_id)) is not None:
            rows.put_budget(replace(state, spec=replace(state.spec, max_cost_usd=most_usd)))

    store.atomically(work)


def reset_budget(store: LimitsStore, budget_id: str, now: datetime) -> BudgetState:
    """Count from nothing again; the limit stays."""

    def work(rows: Rows) -> BudgetState:
        before = _budget(rows, budget_id)
        rows.put_budget(cleared(before, now))
        rows.drop_spend(budget_id)
        rows.add_incident(Incident(budget_id, "reset", f"{before.tokens_used:,} tokens were used", now))
        return cleared(before, now)

    return store.atomically(work)


def acknowledge_circuit(store: LimitsStore, circuit_id: str, now: datetime) -> CircuitState:
    """Let one call through; its success closes the circuit. A circuit that is not open is left as it is."""

    def work(rows: Rows) -> CircuitState:
        before = _circuit(rows, circuit_id)
        state = replace(half_open(before) if before.tripped else before, last_updated=now.timestamp())
        rows.put_circuit(state)
        if before.tripped:
            rows.add_incident(Incident(circuit_id, "ack", f"after {before.rule}: {before.trip_reason}", now))
            _forgive(rows, circuit_id, before)
        return state

    return store.atomically(work)


def reset_circuit(store: LimitsStore, circuit_id: str, now: datetime) -> CircuitState:
    """Closed, with every window and count emptied; the number of trips stays."""

    def work(rows: Rows) -> CircuitState:
        before = _circuit(rows, circuit_id)
        state = CircuitState(
            circuit_id,
            last_updated=now.timestamp(),
            calls=replace(before.calls, iteration_count=0, log=()),
            trips=before.trips,
        )
        rows.put_circuit(state)
        rows.add_incident(Incident(circuit_id, "reset", f"was {before.state}", now))
        _forgive(rows, circuit_id, before)
        return state

    return store.atomically(work)


def acknowledge_alert(store: LimitsStore, alert_id: str) -> Alert:
    """Mark an alert as seen."""

    alert = store.atomically(lambda rows: rows.acknowledge_alert(alert_id))
    if alert is None:
        raise NoSuch(f"there is no alert {alert_id}", hint="lopen alerts lists them")
    return alert


def _forgive(rows: Rows, circuit_id: str, before: CircuitState) -> None:
    """A person let it go on: a session's totals are counted from here."""
    if not before.needs_ack or before.rule not in ("external_api", "agent_spawn"):
        return
    agents = read_agents(rows, circuit_id)
    if before.rule == "external_api":
        agents = replace(agents, cost_forgiven=agents.cost_usd)
    else:
        agents = replace(agents, spawned=0)
    put_agents(rows, circuit_id, agents)


def _budget(rows: Rows, budget_id: str) -> BudgetState:
    state = rows.budget(budget_id)
    if state is None:
        raise NoSuch(f"there is no budget {budget_id}", hint="lopen budget show lists them")
    return state


def _circuit(rows: Rows, circuit_id: str) -> CircuitState:
    state = rows.circuit(circuit_id)
    if state is None:
        raise NoSuch(f"there is no circuit {circuit_id}", hint="lopen circuit status lists them")
    return state
