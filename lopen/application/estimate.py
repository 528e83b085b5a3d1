"""The estimate of a build's cost, given before anything is paid for: a range, and the limits that hold.

The range comes from the specification's size, or from what this project's finished sessions used for each of their
acceptance criteria, at the list prices of the models in the settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lopen.application.command_context import CommandContext
from lopen.application.limits import looked_up
from lopen.core.money import dollars
from lopen.limits.budgets.budget import BudgetState
from lopen.settings.schema import Settings
from lopen.specification.spec import Specification
from lopen.store.sessions import SessionStore

# Tokens as budgets count them. The bundled example, seven small criteria done at the first attempt, used 62,000;
# a library of 2,000 lines with twenty used 300,000.
PLANNING = (10_000, 60_000)
CRITERION = (6_000, 60_000)
SPREAD = (0.5, 2.0)  # around the cheapest and the dearest criterion of this project's sessions
OUTPUT_SHARE = (0.1, 0.3)  # of these tokens; the example's is 0.13
CHARS_A_TOKEN = 4

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The range of tokens and of US dollars; `cost_usd` is None without a known price."""

    tokens: tuple[int, int]
    cost_usd: Range | None
    sessions: int  # finished ones that it comes from; 0: the specification's size alone


@dataclass(frozen=True, slots=True)
class PastSession:
    """The tokens and the cost of a finished session."""

    criteria: int
    tokens: int
    cost_usd: float | None


def estimated(
    criteria: int, chars: int, past: Sequence[PastSession], prices: tuple[Range, Range] | None
) -> CostEstimate:
    """Return the range for a specification with so many criteria and characters.

    `prices`: dollars per token of input and of output, of the cheapest model that works and of the dearest one.
    """
    if past:
        each = [p.tokens / p.criteria for p in past]
        tokens = round(min(each) * SPREAD[0] * criteria), round(max(each) * SPREAD[1] * criteria)
    else:
        read = chars // CHARS_A_TOKEN  # once at the least, for each criterion at the most
        tokens = (
            PLANNING[0] + CRITERION[0] * criteria + read,
            PLANNING[1] + (CRITERION[1] + read) * criteria,
        )
    paid = [p.cost_usd / p.criteria for p in past if p.cost_usd]
    if len(paid) == len(past) and paid:
        return CostEstimate(
            tokens, (min(paid) * SPREAD[0] * criteria, max(paid) * SPREAD[1] * criteria), len(past)
        )
    if prices is None:
        return CostEstimate(tokens, None, len(past))
    low, high = (
        count * ((1 - share) * of_input + share * of_output)
        for count, share, (of_input, of_output) in zip(tokens, OUTPUT_SHARE, prices, strict=True)
    )
    return CostEstimate(tokens, (low, high), len(past))


def tell(
    context: CommandContext, spec: Specification, store: SessionStore, settings: Settings, model: str = ""
) -> None:
    """Print what the build of `spec` may cost, and the limits. `model` is the one for every phase, if one is given."""
    budgets = {b.budget_id: b for b in looked_up(context, store.database).budgets}
    models = [model] if model else [settings.models.planning, settings.models.building]
    found = estimated(len(spec.criteria), len(spec.text), _past(store, budgets), _prices(models))
    limits = _limits(settings)
    context.emit(
        "estimate",
        module=spec.module,
        criteria=len(spec.criteria),
        tokens=found.tokens,
        cost_usd=found.cost_usd,
        sessions=found.sessions,
        limits=limits,
    )
    tokens = " to ".join(f"{count:,}" for count in found.tokens)
    cost = "price unknown" if found.cost_usd is None else " to ".join(dollars(usd) for usd in found.cost_usd)
    counted = "finished session" if found.sessions == 1 else "finished sessions"
    basis = f"{found.sessions} {counted} of this project" if found.sessions else "the specification's size"
    context.say(f"the whole build may cost {cost} ({tokens} tokens): a range, from {basis}")
    said = [f"{name} {limit}" for name, limit in _said(limits)]
    context.say(f"limits: {', '.join(said)}")


def _past(store: SessionStore, budgets: dict[str, BudgetState]) -> list[PastSession]:
    found = []
    for session in store.readable(store.ids()):
        used = budgets.get(f"session:{session.id}")
        if session.finished and session.criteria and used is not None and used.tokens_used:
            cost = None if used.unpriced_tokens else used.cost_usd
            found.append(PastSession(len(session.criteria), used.tokens_used, cost))
    return found


def _prices(models: Sequence[str]) -> tuple[Range, Range] | None:
    from lopen.models.messages import Usage
    from lopen.models.prices import cost_usd

    many = 100_000  # of a size that real sessions have, below the tiers of long prompts
    rates = []
    for model in models:
        of_input, of_output = cost_usd(model, Usage(many)), cost_usd(model, Usage(0, many))
        if of_input is None or of_output is None:
            return None
        rates.append((of_input / many, of_output / many))
    return min(rates), max(rates)


def _limits(settings: Settings) -> dict[str, float]:
    """Return the limits of a build by their settings; 0 means no limit."""
    budget = settings.budget
    return {
        "budget.max_cost_usd": budget.max_cost_usd,
        "budget.session_tokens": budget.session_tokens if budget.enabled else 0,
        "budget.task_tokens": budget.task_tokens if budget.enabled else 0,
        "budget.token_budget_per_module": budget.token_budget_per_module if budget.enabled else 0,
        "workflow.max_iterations": settings.workflow.max_iterations,
    }


def _said(limits: dict[str, float]) -> list[tuple[str, str]]:
    """Return the limits in words."""
    cost = limits["budget.max_cost_usd"]
    named = (
        ("session", "budget.session_tokens"),
        ("task", "budget.task_tokens"),
        ("module", "budget.token_budget_per_module"),
    )
    return [
        ("cost", dollars(cost) if cost else "unlimited (set one with --max-cost)"),
        *((name, f"{limits[key]:,.0f} tokens" if limits[key] else "unlimited") for name, key in named),
        ("iterations", f"{limits['workflow.max_iterations']:,.0f}"),
    ]
