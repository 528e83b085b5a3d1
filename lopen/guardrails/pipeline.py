"""The ordered table of guardrails, and one pass over it before each iteration (docs/reference/guardrails.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lopen.core.events import GuardrailRaised
from lopen.guardrails import completion, habits, repeated_failures, resource_limits
from lopen.guardrails.guard import Category, GuardFacts, Guardrail, GuardResult, one_line
from lopen.workflow.pauses import Pause

GUARDRAILS: tuple[Guardrail, ...] = (
    Guardrail(100, resource_limits.BUDGET, Category.RESOURCE_LIMITS, True, resource_limits.check_budget),
    Guardrail(110, resource_limits.CIRCUITS, Category.RESOURCE_LIMITS, True, resource_limits.check_circuits),
    Guardrail(200, repeated_failures.NAME, Category.PROGRESS_INTEGRITY, True, repeated_failures.check),
    Guardrail(210, habits.CIRCULAR, Category.PROGRESS_INTEGRITY, False, habits.check_circles),
    Guardrail(220, completion.SCOPE, Category.PROGRESS_INTEGRITY, False, completion.check_scope),
    Guardrail(300, completion.QUALITY, Category.QUALITY_GATES, True, completion.check_quality),
    Guardrail(400, habits.DISCIPLINE, Category.TOOL_DISCIPLINE, False, habits.check_discipline),
)
# These two never block
ADVISORY: frozenset[str] = frozenset({habits.CIRCULAR, habits.DISCIPLINE})

# Their corrections tell of the present state: a later pass makes them anew, or they do not hold any more
RENEWED: frozenset[str] = ADVISORY | {resource_limits.BUDGET, completion.SCOPE, completion.QUALITY}


def lasting(corrections: Iterable[str]) -> tuple[str, ...]:
    """Return the corrections of earlier passes without the ones that a new pass makes anew."""
    return tuple(c for c in corrections if c.partition(": ")[0] not in RENEWED)


@dataclass(frozen=True, slots=True)
class Passed:
    """The results of one pass, in order, up to a short circuit."""

    results: tuple[GuardResult, ...]

    @property
    def pause(self) -> Pause | None:
        """Return the pause of the first block; the run ends with it (exit code 3)."""
        return next((r.pause for r in self.results if r.pause), None)

    @property
    def raised(self) -> tuple[GuardResult, ...]:
        """Return the warnings and blocks."""
        return tuple(r for r in self.results if r.reason)

    @property
    def corrections(self) -> tuple[str, ...]:
        """Return the corrections for the next prompt. After a block the model gets them when the run continues."""
        return tuple(f"{r.guard}: {r.correction or r.reason}" for r in self.raised)

    @property
    def wait_s(self) -> float:
        """Return the seconds to wait before the iteration begins."""
        return max((r.wait_s for r in self.results), default=0.0)


def run(guards: Sequence[Guardrail], facts: GuardFacts) -> Passed:
    """Run one pass in `order`. A guard that raises becomes a warning (fail open)."""
    results: list[GuardResult] = []
    for guard in sorted(guards, key=lambda g: g.order):
        result = _checked(guard, facts)
        results.append(result)
        if guard.short_circuit and result.pause:
            break
    return Passed(tuple(results))


def _checked(guard: Guardrail, facts: GuardFacts) -> GuardResult:
    try:
        return guard.check(facts)
    except Exception as error:  # noqa: BLE001 - a broken guard must not stop the work
        failure = one_line(f"{type(error).__name__}: {error}")
        return GuardResult(
            guard.name,
            f"the guard {guard.name} itself failed: {failure}",
            f"lopen could not run this check ({failure}); follow its rule yourself.",
            action="continues without this check",
        )


def events(results: Iterable[GuardResult]) -> tuple[GuardrailRaised, ...]:
    """Return the events of a pass: the warnings and blocks to announce."""
    return tuple(
        GuardrailRaised(r.guard, "block" if r.pause else "warn", r.reason, r.action)
        for r in results
        if r.reason and r.announce
    )
