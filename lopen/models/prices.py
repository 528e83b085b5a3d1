"""The cost of a request. The only importer of `genai_prices`, which ships its price table: no network is used."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from lopen.models.messages import Usage

PROVIDERS: Final = (None, "aws")  # the second knows ids like `us.anthropic.claude-…`
KINDS: Final = ("input_mtok", "output_mtok", "cache_write_mtok", "cache_read_mtok")
PriceTiers = tuple[tuple[int, tuple[float, ...]], ...]


def cost_usd(model: str, usage: Usage) -> float | None:
    """Return the US dollars for one request at list prices, or None for a model without a known price.

    Call it for each request, because some models have tiers by the size of a single prompt.
    """
    tiers = price_tiers(model)
    if tiers is None:
        return None
    rates = [rates for above, rates in tiers if usage.whole_input > above or not above][-1]
    counts = usage.input_tokens, usage.output_tokens, usage.cache_write_tokens, usage.cache_read_tokens
    return sum(rate * count for rate, count in zip(rates, counts, strict=True))


@lru_cache(maxsize=64)
def price_tiers(model: str) -> PriceTiers | None:
    """Return the dollars per token of each kind, by the size of prompt above which they hold; None if unknown.

    A caller without this library, as a hook is, prices single requests with them.
    """
    price = _price(model)
    if price is None:
        return None
    kinds = [getattr(price, kind, None) or price.input_mtok for kind in KINDS]
    starts = {tier.start for kind in kinds for tier in getattr(kind, "tiers", ())}
    return tuple((above, tuple(_rate(kind, above) for kind in kinds)) for above in (0, *sorted(starts)))


def known_models() -> list[str]:
    """Return the ids of Anthropic's models in the table."""
    from genai_prices.data import providers

    return [model.id for provider in providers if provider.id == "anthropic" for model in provider.models]


def _rate(price: Any, above: int) -> float:
    """Return the dollars per token of one kind for a prompt larger than `above`."""
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= above]
    return float([getattr(price, "base", price), *reached][-1]) / 1_000_000


def _price(model: str) -> Any:
    """Return the table's price of a model, or None."""
    import genai_prices

    for provider in PROVIDERS:
        try:
            return genai_prices.calc_price(genai_prices.Usage(), model, provider_id=provider).model_price
        except LookupError:
            continue
    return None
