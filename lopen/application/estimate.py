"""The possible cost of a build, and its limits, shown before anything is paid for; and the dry run, which says only
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lopen.application.command_context import CommandContext, RunOptions
from lopen.application.event_lines import counted, step_title
from lopen.application.open_store import looked_up, open_store
from lopen.application.reports import specification_of
from lopen.core.errors import ExitCode
from lopen.core.money import dollars
from lopen.limits.budget import BudgetState
from lopen.settings.schema import Settings
from lopen.settings.sources import Loaded
from lopen.specification.modules import spec_path
from lopen.specification.spec import Specification
from lopen.store.sessions import SessionStore
from lopen.workflow import changes
from lopen.workflow.next_step import assess, displayed_step
from lopen.workflow.session import Session
from lopen.workflow.steps import Step

# Tokens as budgets count them. The bundled example, seven small criteria done at the first attempt, used 62,000;
# a library of 2,000 lines with twenty used 300,000.
PLANNING = (10_000, 30_000)
CRITERION = (6_000, 15_000)
SPREAD = (0.7, 1.5)  # around what three finished builds of the project used for each criterion
OUTPUT_SHARE = (0.1, 0.3)  # of these tokens; the example's is 0.13
CHARS_A_TOKEN = 4

Range = tuple[float, float]


def estimated_tokens(criteria: int, chars: int) -> tuple[int, int]:
    """Return the range of tokens for a specification with so many criteria and characters."""
    read = chars // CHARS_A_TOKEN  # once at the least, for each criterion at the most
    return PLANNING[0] + CRITERION[0] * criteria + read, PLANNING[1] + (CRITERION[1] + read) * criteria


def estimated_cost(tokens: tuple[int, int], models: Sequence[str]) -> Range | None:
    """Return the range in US dollars at list prices: at the least all by the cheapest model, at the most planned by the
    first and built by the last; None without a price.
    """
    from lopen.models.messages import Usage
    from lopen.models.prices import cost_usd

    many = 100_000  # of a size that real sessions have, below the tiers of long prompts
    rates = []
    for model in models:
        of_input, of_output = cost_usd(model, Usage(many)), cost_usd(model, Usage(0, many))
        if of_input is None or of_output is None:
            return None
        rates.append((of_input / many, of_output / many))
    prices = [
        [(1 - share) * of_input + share * of_output for of_input, of_output in rates]
        for share in OUTPUT_SHARE
    ]
    low = tokens[0] * min(prices[0])
    high = PLANNING[1] * prices[1][0] + (tokens[1] - PLANNING[1]) * prices[1][-1]
    return low, high


def learned(
    store: SessionStore, budgets: Sequence[BudgetState], criteria: int
) -> tuple[int, tuple[int, int], Range] | None:
    """Return how many finished builds the project has, and the range of tokens and cost that follows from them.

    A build by a model without a known price tells no cost of the next one. One build or two tell less than three, so
    their range is wider.
    """
    used = {b.budget_id: b for b in budgets if b.unpriced_tokens < b.tokens_used / 2}
    found = [
        (own.tokens_used * share, own.cost_usd * share)
        for session in store.readable(store.ids())
        if session.finished and session.plan.criteria and (own := used.get(f"session:{session.id}"))
        for share in (criteria / len(session.plan.criteria),)
    ]
    if not found:
        return None
    tokens, costs = (sorted(each) for each in zip(*found, strict=True))
    low, high = (share ** max(1, 3 / len(found)) for share in SPREAD)
    return len(found), (int(tokens[0] * low), int(tokens[-1] * high)), (costs[0] * low, costs[-1] * high)


class Expected(NamedTuple):
    """The range of tokens and of cost of a build, the cost None where a price is not known; and both in words."""

    tokens: tuple[int, int]
    usd: Range | None
    words: str


def expected(
    store: SessionStore,
    budgets: Sequence[BudgetState],
    spec: Specification,
    settings: Settings,
    model: str = "",
) -> Expected:
    """Return what the build of `spec` may cost, from finished builds, else from its size. `model`: for every phase."""
    tokens = estimated_tokens(len(spec.criteria), len(spec.text))
    cost = estimated_cost(tokens, [model] if model else [settings.models.planning, settings.models.building])
    source = "a range, from the specification's size, without its draft"
    if not model and (known := learned(store, budgets, len(spec.criteria))):
        builds, tokens, cost = known
        source = f"from {counted(builds, 'finished build')} of this project, drafts included"
    shown = "price unknown" if cost is None else " to ".join(dollars(usd) for usd in cost)
    return Expected(tokens, cost, f"may cost {shown} ({tokens[0]:,} to {tokens[1]:,} tokens): {source}")


def tell(context: CommandContext, spec: Specification, settings: Settings, model: str = "") -> None:
    """Print the possible cost of the build of `spec`, and the limits. `model` is the one for every phase, if one is
    given.
    """
    store = open_store(context)
    budgets = looked_up(context, store.database).budgets
    tokens, cost, words = expected(store, budgets, spec, settings, model)
    budget, counts = settings.budget, settings.budget.enabled
    limits = {
        "budget.max_cost_usd": budget.max_cost_usd,
        "budget.session_tokens": budget.session_tokens if counts else 0,
        "budget.task_tokens": budget.task_tokens if counts else 0,
        "budget.token_budget_per_module": budget.token_budget_per_module if counts else 0,
        "workflow.max_iterations": settings.workflow.max_iterations,
    }
    context.emit(
        "estimate",
        module=spec.module,
        criteria=len(spec.criteria),
        tokens=tokens,
        cost_usd=cost,
        limits=limits,
    )
    context.say(f"the whole build {words}")
    most = dollars(budget.max_cost_usd) if budget.max_cost_usd else "unlimited (set one with --max-cost)"
    named = {"session": "session_tokens", "task": "task_tokens", "module": "token_budget_per_module"}
    said = [f"cost {most}"]
    for name, key in named.items():
        limit = limits[f"budget.{key}"]
        said.append(f"{name} {limit:,.0f} tokens" if limit else f"{name} unlimited")
    context.say(f"limits: {', '.join(said)}, iterations {settings.workflow.max_iterations:,}")


def preview(
    context: CommandContext, store: SessionStore, session: Session, loaded: Loaded, options: RunOptions
) -> ExitCode:
    """Print the first step of a run, its possible cost, and its first pause. Send, save and ask nothing."""
    from lopen.application.session_model import check_models

    settings, model = loaded.settings, options.model
    check_models(context, loaded, model)
    if spec := specification_of(context.root, session.module):
        tell(context, spec, settings, model)
    step, models = displayed_step(session), settings.models
    drafted = spec_path(context.root, session.module).exists()
    given = store.approval(session.module)
    waits = drafted and given is None
    if step is Step.DRAFT_SPECIFICATION and drafted and given is not None:
        step = assess(changes.approve(session, given))
    by_phase = models.building if step is Step.ITERATE_THROUGH_TASKS else models.planning
    asked = model or (models.requirement_gathering if step is Step.DRAFT_SPECIFICATION else by_phase)
    run = f"lopen run {session.module}{' --new' if options.new else ''}"
    command = f"lopen approve {session.module} --run" if waits else run
    context.say(f"it would begin with {step_title(step)}; the model asked first is {asked}")
    context.say("it would wait for your approval; nothing was sent" if waits else "nothing was sent")
    context.say(f"next: {command}")
    context.emit("dry_run", step=step.value, model=asked, waits_for_approval=waits, command=command)
    return ExitCode.OK
