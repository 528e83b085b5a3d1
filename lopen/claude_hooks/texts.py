"""What the hooks say about a session's budget and circuit: a refusal in two lines, all else in one."""

from __future__ import annotations

from lopen.limits.budgets.budget import BudgetState, percent
from lopen.limits.texts import extend_command, used_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from lopen.limits.circuits.agents import AgentLimits
    from lopen.limits.circuits.circuit import CircuitState
    from lopen.limits.circuits.rules import RuleBook
    from lopen.limits.stores.records import Alert


def exhausted(state: BudgetState) -> str:
    """Why nothing more may be done, and how to go on."""
    return (
        f"Token budget exhausted ({used_of(state)} tokens used). HITL review required to continue.\n"
        f"A person lets it go on with: {extend_command(state, short=True)}"
    )


def waits_for_ack(circuit: CircuitState) -> str:
    """Why no prompt is taken: only a person closes the circuit."""
    return (
        f"Circuit breaker tripped: {circuit.trip_reason}.\nA person lets it go on with: lopen circuit ack"
        " (in a terminal of their own), then this prompt again."
    )


def beside_probe(rule: str, tool: str) -> str:
    """Why a call waits for another one."""
    return (
        f"Circuit breaker half-open after {rule}: one call ({tool}) is being tried, and no other is let through"
        " before it ends.\nMake this call again then."
    )


def warning(alert: Alert, budgets: Mapping[str, BudgetState]) -> str:
    """What the model is told at a warning threshold."""
    state = budgets.get(alert.budget_id)
    if state is None or not alert.utilization:  # of money
        return f"## Budget Warning\n{alert.message}"
    return (
        f"## Budget Warning\nToken usage at {percent(alert.utilization)} ({used_of(state)})."
        " Consider wrapping up current task."
    )


def warned(alert: Alert) -> str:
    """The same for the person."""
    return f"lopen: {alert.message}"


def recovered(state: BudgetState, circuit: CircuitState) -> str:
    """Work goes on after it was held."""
    how = "one call is tried" if circuit.state == "half_open" else "calls are let through again"
    return f"lopen: {how}. {budget_line(state)}"


def guarded(state: BudgetState, circuit: CircuitState, limits: AgentLimits) -> str:
    """The line at a session's start: what is guarded, and how much is left."""
    left = "no limit on tokens" if state.remaining is None else f"{state.remaining:,} tokens left"
    return (
        f"lopen guards this session: {left} ({percent(state.utilization)} used), circuit {circuit.state},"
        f" {limits.max_concurrent_agents} sub-agents at once."
    )


def budget_line(state: BudgetState) -> str:
    """Tokens used of those allowed."""
    kind = f"Task budget ({state.task_description})" if state.budget_type == "task" else "Session budget"
    if state.max_tokens <= 0:
        return f"{kind}: {state.tokens_used:,} tokens (unlimited)"
    return f"{kind}: {used_of(state)} tokens ({percent(state.utilization)})"


def circuit_line(circuit: CircuitState, book: RuleBook) -> str:
    """State and calls of a circuit."""
    of = f"/{circuit.max_iterations}" if book["max_iterations"].enabled else ""
    return f"Circuit breaker: {circuit.state} ({circuit.calls.iteration_count}{of} iterations)"
