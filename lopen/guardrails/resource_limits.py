"""Orders 100 and 110: the module's budget and its circuits (docs/reference/budgets-and-circuits.md).

The budget warns, asks for one confirmation, then pauses. Tokens and requests share the confirmation: a person
confirms the module's budget, not a unit. A circuit that needs a person blocks; lopen waits out a cooldown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lopen.guardrails.guard import (
    BudgetFacts,
    GuardFacts,
    GuardResult,
    GuardVerdict,
    OpenCircuit,
    ack_command,
    confirm_command,
    extend_command,
    more_requests_command,
    one_line,
    passing,
)

BUDGET = "budget"
CIRCUITS = "circuit_breaker"
CONFIRM_SUBJECT = "budget"


@dataclass(frozen=True, slots=True)
class LimitUse:
    """The used part of one limit. A limit of 0 is unlimited."""

    unit: Literal["tokens", "requests"]
    used: int
    limit: int

    @property
    def fraction(self) -> float:
        """Return used / limit, or 0 where there is no limit."""
        return self.used / self.limit if self.limit > 0 else 0.0

    def __str__(self) -> str:
        return f"{self.used:,} of {self.limit:,} {self.unit} ({int(self.fraction * 100)}%)"


def level_of(threshold: float) -> int:
    """Return a threshold as a whole percentage, the form in which it is stored as confirmed or announced."""
    return round(threshold * 100)


def check_budget(facts: GuardFacts) -> GuardResult:
    """Judge the limit of which the largest fraction is used."""
    budget = facts.budget
    if not budget.enabled:
        return passing(BUDGET, "budgets are switched off")
    use = max(
        LimitUse("tokens", budget.tokens_used, budget.tokens_max),
        LimitUse("requests", budget.requests_used, budget.requests_max),
        key=lambda u: u.fraction,
    )
    if use.fraction >= budget.pause:
        return _enforced(budget, _pause(facts, use))
    if use.fraction >= budget.confirmation and budget.confirmed_level < level_of(budget.confirmation):
        return _enforced(budget, _confirmation(facts, use))
    if use.fraction >= budget.warning:
        return _warning(facts, use)
    return passing(BUDGET)


def _warning(facts: GuardFacts, use: LimitUse) -> GuardResult:
    reached = facts.budget.confirmation if use.fraction >= facts.budget.confirmation else facts.budget.warning
    return GuardResult(
        BUDGET,
        GuardVerdict.WARN,
        f"module {facts.module} has used {use}",
        _economise(use),
        level=level_of(reached),
        action="continues",
        announce=facts.budget.announced_level < level_of(reached),
    )


def _confirmation(facts: GuardFacts, use: LimitUse) -> GuardResult:
    return GuardResult(
        BUDGET,
        GuardVerdict.BLOCK,
        f"module {facts.module} has used {use} and needs a confirmation to continue",
        _economise(use),
        confirm_command(facts.session),
        "confirmation",
        CONFIRM_SUBJECT,
        level_of(facts.budget.confirmation),
        "pauses until a person confirms",
    )


def _pause(facts: GuardFacts, use: LimitUse) -> GuardResult:
    return GuardResult(
        BUDGET,
        GuardVerdict.BLOCK,
        f"module {facts.module} has used up its budget: {use}",
        _economise(use),
        extend_command(facts.module, facts.budget.extension)
        if use.unit == "tokens"
        else more_requests_command(),
        "budget",
        level=level_of(facts.budget.pause),
        action="pauses until the budget is extended",
    )


def _economise(use: LimitUse) -> str:
    return (
        f"The module's budget is nearly spent: {use}. Finish the present task by the shortest way: "
        "read only what you need, write complete changes at once, verify, record the result."
    )


def _enforced(budget: BudgetFacts, block: GuardResult) -> GuardResult:
    """Return the block, or a warning with the same text where `budget.enforcement` is "warn"."""
    if budget.enforcement == "hard":
        return block
    return GuardResult(
        BUDGET,
        GuardVerdict.WARN,
        block.reason,
        block.correction,
        level=block.level,
        action="continues, because budget.enforcement is warn",
        announce=budget.announced_level < block.level,
    )


def level_in(results: Iterable[GuardResult]) -> int:
    """Return the percentage that a pass announced, for the next pass's `announced_level`; 0 for none."""
    return max((r.level for r in results if r.guard == BUDGET), default=0)


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
    return f"circuit {circuit.rule} is open: {one_line(circuit.reason)}"


def _correction(circuit: OpenCircuit) -> str:
    return (
        f"The circuit breaker {circuit.rule} tripped: {one_line(circuit.reason)}. The call that tripped it "
        "was not executed. Do not repeat what led there: take another next step."
    )
