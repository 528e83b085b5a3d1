"""The guardrails in order, as data, and one pass over them (contract §6). Runs before every iteration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lopen.guardrails import budget, churn, circuits, circular, discipline, quality, scope
from lopen.guardrails.facts import GuardFacts
from lopen.guardrails.verdicts import Category, Guard, Result, Verdict
from lopen.guardrails.wording import one_line

GUARDRAILS: tuple[Guard, ...] = (
    Guard(100, budget.NAME, Category.RESOURCE_LIMITS, True, budget.check),
    Guard(110, circuits.NAME, Category.RESOURCE_LIMITS, True, circuits.check),
    Guard(200, churn.NAME, Category.PROGRESS_INTEGRITY, True, churn.check),
    Guard(210, circular.NAME, Category.PROGRESS_INTEGRITY, False, circular.check),
    Guard(220, scope.NAME, Category.PROGRESS_INTEGRITY, False, scope.check),
    Guard(300, quality.NAME, Category.QUALITY_GATES, True, quality.check),
    Guard(400, discipline.NAME, Category.TOOL_DISCIPLINE, False, discipline.check),
)
# Advice only: these two never block, and they alone may be switched off (`guardrails.disabled`).
ADVISORY: frozenset[str] = frozenset({circular.NAME, discipline.NAME})


@dataclass(frozen=True, slots=True)
class Passed:
    """What one pass brought, in order; guards after a short circuit are not in it."""

    results: tuple[Result, ...]

    @property
    def block(self) -> Result | None:
        """The first block: the one the run ends with."""
        return next((r for r in self.results if r.verdict is Verdict.BLOCK), None)

    @property
    def blocked(self) -> bool:
        """The run ends here, paused (exit 3)."""
        return self.block is not None

    @property
    def raised(self) -> tuple[Result, ...]:
        """Warnings and blocks."""
        return tuple(r for r in self.results if r.verdict is not Verdict.PASS)

    @property
    def corrections(self) -> tuple[str, ...]:
        """What the next prompt tells the model. Blocks are in it too: they are told once the run goes on."""
        return tuple(f"{r.guard}: {r.correction or r.reason}" for r in self.raised)

    @property
    def wait_s(self) -> float:
        """Seconds to sit out before the iteration begins."""
        return max((r.wait_s for r in self.results), default=0.0)


def selected(disabled: Collection[str], guards: Sequence[Guard] = GUARDRAILS) -> tuple[Guard, ...]:
    """The table without the advisory guards named in `disabled`; the others cannot be switched off."""
    return tuple(g for g in guards if g.name not in disabled or g.name not in ADVISORY)


def run(guards: Sequence[Guard], facts: GuardFacts) -> Passed:
    """One pass, by `order` whatever the sequence's own. A guard that raises becomes a warning (fail open)."""
    results: list[Result] = []
    for guard in sorted(guards, key=lambda g: g.order):
        result = _checked(guard, facts)
        results.append(result)
        if guard.short_circuit and result.verdict is Verdict.BLOCK:
            break
    return Passed(tuple(results))


def _checked(guard: Guard, facts: GuardFacts) -> Result:
    try:
        return guard.check(facts)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a guard must not stop the work
        said = one_line(f"{type(error).__name__}: {error}")
        return Result(
            guard.name,
            Verdict.WARN,
            f"the guard {guard.name} itself failed: {said}",
            f"This check could not be made ({said}); keep to its rule by yourself.",
            action="goes on without this check",
        )
