"""What the hooks say about a session's budget and circuit."""

from __future__ import annotations

from lopen.limits.budgets.budget import BudgetState, percent
from lopen.limits.circuits.circuit import CircuitState
from lopen.limits.circuits.rules import RuleBook
from lopen.limits.stores.records import Alert
from lopen.limits.texts import extend_command, used_of


def exhausted(state: BudgetState) -> str:
    """Why nothing more may be done, and how to go on."""
    return (
        f"Token budget exhausted ({used_of(state)} tokens used). HITL review required to continue."
        f" A person lets it go on with: {extend_command(state)}"
    )


def warning(state: BudgetState, alert: Alert) -> str:
    return (
        f"## Budget Warning\nToken usage at {percent(alert.utilization)} ({used_of(state)})."
        " Consider wrapping up current task."
    )


def budget_line(state: BudgetState) -> str:
    if state.max_tokens <= 0:
        return f"Session budget: {state.tokens_used:,} tokens (unlimited)"
    return f"Session budget: {used_of(state)} tokens ({percent(state.utilization)})"


def circuit_line(circuit: CircuitState, book: RuleBook) -> str:
    of = f"/{circuit.max_iterations}" if book["max_iterations"].enabled else ""
    return f"Circuit breaker: {circuit.state} ({circuit.calls.iteration_count}{of} iterations)"
