"""Order 100: the module's tokens and requests. Warn, ask once, pause; nothing is thrown away.

Both limits share one confirmation: the person is asked about the module's budget, not about a unit.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lopen.guardrails.answers import GuardResult, GuardVerdict, passing
from lopen.guardrails.facts import BudgetFacts, GuardFacts
from lopen.guardrails.wording import confirm_command, extend_command, more_requests_command

NAME = "budget"
CONFIRM_SUBJECT = "budget"

Unit = Literal["tokens", "requests"]


@dataclass(frozen=True, slots=True)
class Use:
    """How much of one limit is used. A limit of 0 is no limit."""

    unit: Unit
    used: int
    limit: int

    @property
    def fraction(self) -> float:
        """Used of the limit; 0 where there is none."""
        return self.used / self.limit if self.limit > 0 else 0.0

    def __str__(self) -> str:
        return f"{self.used:,} of {self.limit:,} {self.unit} ({int(self.fraction * 100)}%)"


def level_of(threshold: float) -> int:
    """A threshold as the whole percentage that is kept as confirmed or announced."""
    return round(threshold * 100)


def check(facts: GuardFacts) -> GuardResult:
    """The verdict for the limit that is used most."""
    budget = facts.budget
    if not budget.enabled:
        return passing(NAME, "budgets are switched off")
    use = max(
        Use("tokens", budget.tokens_used, budget.tokens_max),
        Use("requests", budget.requests_used, budget.requests_max),
        key=lambda u: u.fraction,
    )
    if use.fraction >= budget.pause:
        return _soften(budget, _paused(facts, use))
    if use.fraction >= budget.confirmation and budget.confirmed_level < level_of(budget.confirmation):
        return _soften(budget, _asks(facts, use))
    if use.fraction >= budget.warning:
        return _warns(facts, use)
    return passing(NAME)


def _warns(facts: GuardFacts, use: Use) -> GuardResult:
    reached = facts.budget.confirmation if use.fraction >= facts.budget.confirmation else facts.budget.warning
    return GuardResult(
        NAME,
        GuardVerdict.WARN,
        f"module {facts.module} has used {use}",
        _economise(use),
        level=level_of(reached),
        action="goes on",
        announce=facts.budget.announced_level < level_of(reached),
    )


def _asks(facts: GuardFacts, use: Use) -> GuardResult:
    return GuardResult(
        NAME,
        GuardVerdict.BLOCK,
        f"module {facts.module} has used {use} and wants a confirmation to go on",
        _economise(use),
        confirm_command(facts.session),
        "confirmation",
        CONFIRM_SUBJECT,
        level_of(facts.budget.confirmation),
        "pauses until a person confirms",
    )


def _paused(facts: GuardFacts, use: Use) -> GuardResult:
    return GuardResult(
        NAME,
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


def _economise(use: Use) -> str:
    return (
        f"The module's budget is nearly spent: {use}. Finish the present task by the shortest way: "
        "read only what you need, write complete changes at once, verify, record the result."
    )


def _soften(budget: BudgetFacts, block: GuardResult) -> GuardResult:
    """With `budget.enforcement = "warn"` the same words, and the work goes on."""
    if budget.enforcement == "hard":
        return block
    return GuardResult(
        NAME,
        GuardVerdict.WARN,
        block.reason,
        block.correction,
        level=block.level,
        action="goes on, since budget.enforcement is warn",
        announce=budget.announced_level < block.level,
    )


def level_in(results: Iterable[GuardResult]) -> int:
    """The percentage a pass spoke of, for the next pass's `announced_level`; 0 where it said nothing."""
    return max((r.level for r in results if r.guard == NAME), default=0)
