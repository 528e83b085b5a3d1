"""Orders 100 and 110: the budgets' answer and the circuits (docs/reference/budgets-and-circuits.md).

The budgets themselves warn, ask for a confirmation and pause (`limits.charging.promise`): the guard reports their one
answer before an iteration. A circuit that needs a person blocks; lopen waits out a cooldown.
"""

from __future__ import annotations

from lopen.guardrails.guard import GuardFacts, GuardResult, one_line
from lopen.workflow.pauses import budget_reached, circuit_open

BUDGET = "budget"
CIRCUITS = "circuit_breaker"


def check_budget(facts: GuardFacts) -> GuardResult:
    """Report the budgets' answer; its threshold was announced when it was crossed."""
    budget = facts.budget
    if not budget.crossing:
        return GuardResult(BUDGET)
    economise = (
        f"{budget.message}. Finish the present task by the shortest way: "
        "read only what you need, write complete changes at once, verify, record the result."
    )
    if budget.crossing == "warning":
        return GuardResult(BUDGET, budget.message, economise, action="continues", announce=False)
    confirms = budget.crossing == "confirmation"
    pause = budget_reached(facts.session.id, budget.message, budget.command, confirms=confirms)
    action = "pauses until a person confirms" if confirms else "pauses until the budget is extended"
    return GuardResult(BUDGET, budget.message, economise, pause, action)


def check_circuits(facts: GuardFacts) -> GuardResult:
    """Block where the circuit needs `ack`; warn with the rest of its cooldown, after which one probe is allowed."""
    circuit = facts.circuit
    if circuit is None:
        return GuardResult(CIRCUITS)
    reason = f"{circuit.rule} paused calls: {one_line(circuit.reason)}"
    correction = (
        f"The circuit breaker {circuit.rule} tripped: {one_line(circuit.reason)}. The call that tripped it "
        "was not executed. Do not repeat what led there: take another next step."
    )
    if circuit.needs_ack:
        pause = circuit_open(facts.session.id, one_line(circuit.reason), f"lopen circuit ack {circuit.id}")
        action = "pauses until a person acknowledges the circuit"
        return GuardResult(CIRCUITS, reason, correction, pause, action)
    wait_s = 0.0 if circuit.until is None else (circuit.until - facts.now).total_seconds()
    if wait_s <= 0:
        return GuardResult(CIRCUITS)
    return GuardResult(
        CIRCUITS, reason, correction, action=f"waits {wait_s:.0f} s, then continues", wait_s=wait_s
    )
