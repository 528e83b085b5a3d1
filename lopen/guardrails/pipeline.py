"""The guardrails in order, as data, and one pass over them. Runs before every iteration.

See docs/reference/guardrails.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lopen.base.events import CircuitChanged, Event, GuardrailRaised
from lopen.guardrails import budget, circuits, circular, discipline, quality, repeated_failures, scope
from lopen.guardrails.answers import Category, Guardrail, GuardResult, GuardVerdict
from lopen.guardrails.facts import GuardFacts
from lopen.guardrails.wording import one_line

GUARDRAILS: tuple[Guardrail, ...] = (
    Guardrail(100, budget.NAME, Category.RESOURCE_LIMITS, True, budget.check),
    Guardrail(110, circuits.NAME, Category.RESOURCE_LIMITS, True, circuits.check),
    Guardrail(200, repeated_failures.NAME, Category.PROGRESS_INTEGRITY, True, repeated_failures.check),
    Guardrail(210, circular.NAME, Category.PROGRESS_INTEGRITY, False, circular.check),
    Guardrail(220, scope.NAME, Category.PROGRESS_INTEGRITY, False, scope.check),
    Guardrail(300, quality.NAME, Category.QUALITY_GATES, True, quality.check),
    Guardrail(400, discipline.NAME, Category.TOOL_DISCIPLINE, False, discipline.check),
)
# Advice only: these two never block, and they alone may be switched off (`guardrails.disabled`).
ADVISORY: frozenset[str] = frozenset({circular.NAME, discipline.NAME})


@dataclass(frozen=True, slots=True)
class Passed:
    """What one pass brought, in order; guards after a short circuit are not in it."""

    results: tuple[GuardResult, ...]

    @property
    def block(self) -> GuardResult | None:
        """The first block: the one the run ends with."""
        return next((r for r in self.results if r.verdict is GuardVerdict.BLOCK), None)

    @property
    def blocked(self) -> bool:
        """The run ends here, paused (exit 3)."""
        return self.block is not None

    @property
    def raised(self) -> tuple[GuardResult, ...]:
        """Warnings and blocks."""
        return tuple(r for r in self.results if r.verdict is not GuardVerdict.PASS)

    @property
    def corrections(self) -> tuple[str, ...]:
        """What the next prompt tells the model. Blocks are in it too: they are told once the run goes on."""
        return tuple(f"{r.guard}: {r.correction or r.reason}" for r in self.raised)

    @property
    def wait_s(self) -> float:
        """Seconds to sit out before the iteration begins."""
        return max((r.wait_s for r in self.results), default=0.0)


def selected(disabled: Collection[str], guards: Sequence[Guardrail] = GUARDRAILS) -> tuple[Guardrail, ...]:
    """The table without the advisory guards named in `disabled`; the others cannot be switched off."""
    return tuple(g for g in guards if g.name not in disabled or g.name not in ADVISORY)


def run(guards: Sequence[Guardrail], facts: GuardFacts) -> Passed:
    """One pass, by `order` whatever the sequence's own. A guard that raises becomes a warning (fail open)."""
    results: list[GuardResult] = []
    for guard in sorted(guards, key=lambda g: g.order):
        result = _checked(guard, facts)
        results.append(result)
        if guard.short_circuit and result.verdict is GuardVerdict.BLOCK:
            break
    return Passed(tuple(results))


def _checked(guard: Guardrail, facts: GuardFacts) -> GuardResult:
    try:
        return guard.check(facts)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a guard must not stop the work
        said = one_line(f"{type(error).__name__}: {error}")
        return GuardResult(
            guard.name,
            GuardVerdict.WARN,
            f"the guard {guard.name} itself failed: {said}",
            f"This check could not be made ({said}); keep to its rule by yourself.",
            action="goes on without this check",
        )


def line(result: GuardResult) -> str:
    """The guard, its verdict, why, what lopen does, and the command that answers where one does."""
    parts = [f"{result.guard}: {result.verdict.value}"]
    if result.reason:
        parts.append(one_line(result.reason, 400))
    if result.action:
        parts.append(f"lopen {one_line(result.action)}")
    if result.command:
        parts.append(f"answer with: {one_line(result.command, 400)}")
    return " · ".join(parts)


def tripped(
    told: Iterable[Event], *, needs_ack: bool, until: datetime | None, now: datetime
) -> tuple[GuardrailRaised, ...]:
    """A line for each circuit that `told` says opened just now; `until` is the end of its cooldown."""
    wait_s = max(0.0, (until - now).total_seconds()) if until else 0.0
    action = (
        "pauses until a person acknowledges the circuit"
        if needs_ack
        else f"holds calls back for {wait_s:.0f} s, then lets one through"
    )
    return tuple(
        GuardrailRaised(
            circuits.NAME, "block" if needs_ack else "warn", f"{opened.rule}: {opened.reason}", action
        )
        for opened in told
        if isinstance(opened, CircuitChanged) and opened.state == "open"
    )


def events(results: Iterable[GuardResult]) -> tuple[GuardrailRaised, ...]:
    """The events of a pass: warnings and blocks that people have not been told of before."""
    return tuple(
        GuardrailRaised(r.guard, "block" if r.verdict is GuardVerdict.BLOCK else "warn", r.reason, r.action)
        for r in results
        if r.verdict is not GuardVerdict.PASS and r.announce
    )
