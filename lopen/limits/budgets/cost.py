"""The cost of requests in USD: a limit shortens an answer or stops it before it is paid for; sub-agents' and external calls' own limit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lopen.core.money import dollars
from lopen.limits.budgets.budget import SMALLEST_ANSWER, BudgetUsage, Charge
from lopen.limits.circuits.agents import AgentLimits
from lopen.limits.circuits.call_events import add_cost
from lopen.limits.stores.records import Alert
from lopen.limits.stores.store import Rows
from lopen.models import messages

# USD for one request with an answer of so many tokens; None where its model has no known price
Quote = Callable[[int], float | None]
EXTERNAL_AGENTS = ("oracle", "research")  # whose cost falls under `resources.cost_*`


def charge_of(
    usage: messages.Usage, cost_usd: float | None, agent: str, model: str, cache_read_weight: float
) -> Charge:
    """Return the charge of one request; `cost_usd` is None for a model without a known price."""
    counts = BudgetUsage(
        usage.input_tokens, usage.output_tokens, usage.cache_write_tokens, usage.cache_read_tokens
    )
    return Charge(counts.billed(cache_read_weight), counts, 1, cost_usd, agent, model, usage.estimated)


def unpriced(answer_tokens: int) -> float | None:
    """The quote for a model without a known price."""
    return None


def affordable(quote: Quote, max_tokens: int, left_usd: float) -> int:
    """Return the longest answer, in tokens, that `left_usd` pays for, input included; 0 where not even the smallest.

    All of `max_tokens` where no price is known: such a model is limited in tokens alone.
    """
    whole, bare = quote(max_tokens), quote(0)
    if whole is None or bare is None or whole <= left_usd:
        return max_tokens
    room = int((left_usd - bare) * max_tokens / (whole - bare)) if whole > bare else 0
    return room if room >= min(SMALLEST_ANSWER, max_tokens) else 0


def unheld(quote: Quote, agent: str, max_cost_usd: float, limits: AgentLimits) -> str:
    """The limit in dollars that should hold for this request and cannot, since its model has no known price."""
    if quote(0) is not None:
        return ""
    if max_cost_usd > 0:
        return f"the limit on cost ({dollars(max_cost_usd)})"
    block = limits.cost_block_usd if agent in EXTERNAL_AGENTS else 0.0
    return f"resources.cost_block_usd ({dollars(block)})" if block > 0 else ""


def charge_external(
    rows: Rows, circuit_id: str, charge: Charge, limits: AgentLimits, now: datetime
) -> tuple[Alert, ...]:
    """Keep what sub-agents and external calls cost; the alert on the one charge that reaches the warning."""
    if charge.agent not in EXTERNAL_AGENTS or not charge.cost_usd:
        return ()
    return add_cost(rows, circuit_id, charge.cost_usd, limits, now)
