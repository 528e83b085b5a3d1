"""Orders 100 and 110: the budgets' answer and the circuits (docs/reference/budgets-and-circuits.md).

The budgets themselves warn, ask for a confirmation and pause (`limits.charging.promise`): the guard reports their one
answer before an iteration. A circuit that needs a person blocks; lopen waits out a cooldown.
"""

from __future__ import annotations

from lopen.guardrails.guard import (
    GuardFacts,
    GuardResult,
    GuardVerdict,
    OpenCircuit,
    ack_command,
    one_line,
    passing,
)

BUDGET = "budget"
CIRCUITS = "circuit_breaker"
PAUSES = {
    "confirmation": "pauses until a person confirms",
    "pause": "pauses until the budget is extended",
}


def check_budget(facts: GuardFacts) -> GuardResult:
    """Report the budgets' answer; its threshold was announced when it was crossed."""
    budget = facts.budget
    if not budget.crossing:
        return passing(BUDGET)
    economise = (
        f"{budget.message}. Finish the present task by the shortest way: "
        "read only what you need, write complete changes at once, verify, record the result."
    )
    if budget.crossing == "warning":
        return GuardResult(
            BUDGET, GuardVerdict.WARN, budget.message, economise, action="continues", announce=False
        )
    confirms = budget.crossing == "confirmation"
    return GuardResult(
        BUDGET,
        GuardVerdict.BLOCK,
        budget.message,
        economise,
        budget.command,
        "confirmation" if confirms else "budget",
        action=PAUSES[budget.crossing],
    )


def check_circuits(facts: GuardFacts) -> GuardResult:
    """Block for the first circuit that needs `ack`; else warn with the longest remaining cooldown."""
    for circuit in facts.circuits:
        if circuit.needs_ack:
            return _block(circuit)
    waits = [(_remaining_s(c, facts), c) for c in facts.circuits]
    cooling = [(wait_s, c) for wait_s, c in waits if wait_s > 0]
    if not cooling:
        return passing(CIRCUITS)
    wait_s, circuit = max(cooling, key=lambda pair: pair[0])
    return GuardResult(
        CIRCUITS,
        GuardVerdict.WARN,
        _reason(circuit),
        _correction(circuit),
        action=f"waits {wait_s:.0f} s, then continues",
        wait_s=wait_s,
    )


def _remaining_s(circuit: OpenCircuit, facts: GuardFacts) -> float:
    """Return the seconds of cooldown that remain; 0 at its end, when one probe is allowed."""
    if circuit.until is None:
        return 0.0
    return max(0.0, (circuit.until - facts.now).total_seconds())


def _block(circuit: OpenCircuit) -> GuardResult:
    return GuardResult(
        CIRCUITS,
        GuardVerdict.BLOCK,
        _reason(circuit),
        _correction(circuit),
        ack_command(circuit.id),
        "circuit",
        action="pauses until a person acknowledges the circuit",
    )


def _reason(circuit: OpenCircuit) -> str:
    return f"{circuit.rule} paused calls: {one_line(circuit.reason)}"


def _correction(circuit: OpenCircuit) -> str:
    return (
        f"The circuit breaker {circuit.rule} tripped: {one_line(circuit.reason)}. The call that tripped it "
        "was not executed. Do not repeat what led there: take another next step."
    )
