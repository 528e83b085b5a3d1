"""The cost of a request. The only importer of `genai_prices`, which ships its price table: no network is used."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from lopen.models.messages import Usage

PROVIDERS: Final = (None, "aws")  # the second knows ids like `us.anthropic.claude-…`
SMALL, LARGE = 1_000, 1_000_000  # prompt sizes below the first price tier and above the last


def cost_usd(model: str, usage: Usage) -> float | None:
    """Return the US dollars for one request at list prices, or None for a model without a known price.

    Call it for each request, because some models have tiers by the size of a single prompt.
    """
    rates = _flat_rates(model)
    if rates is None:
        return _priced(model, usage)
    return sum(rate * tokens for rate, tokens in zip(rates, _counts(usage), strict=True))


@lru_cache(maxsize=64)
def _flat_rates(model: str) -> tuple[float, ...] | None:
    """Return the dollars per token of each kind if they do not depend on the size; a lookup per request is slow."""
    rates = []
    for kind in range(4):
        small, large = (
            _priced(model, Usage(*(size if kind == i else 0 for i in range(4)))) for size in (SMALL, LARGE)
        )
        if small is None or large is None or abs(small / SMALL - large / LARGE) > 1e-12:
            return None
        rates.append(large / LARGE)
    return tuple(rates)


def known_models() -> list[str]:
    """Return the ids of Anthropic's models in the table."""
    from genai_prices.data import providers

    return [model.id for provider in providers if provider.id == "anthropic" for model in provider.models]


def price_tiers(model: str) -> tuple[tuple[int, tuple[float, ...]], ...] | None:
    """Return the dollars per token of each kind, by the size of prompt above which they hold; None if unknown.

    A caller without this library, as a hook is, prices single requests with them.
    """
    if flat := _flat_rates(model):
        return ((0, flat),)
    if _priced(model, Usage(LARGE)) is None:
        return None
    below, above = SMALL, LARGE  # prompts on either side of the boundary
    small = (_priced(model, Usage(SMALL)) or 0.0) / SMALL
    while above - below > 1:
        middle = (below + above) // 2
        same = abs((_priced(model, Usage(middle)) or 0.0) / middle - small) < 1e-12
        below, above = (middle, above) if same else (below, middle)
    return (0, _rates(model, SMALL)), (below, _rates(model, LARGE))


def _rates(model: str, prompt: int) -> tuple[float, ...]:
    """Return the dollars per token of each kind for requests with a prompt of this size."""
    whole = _priced(model, Usage(prompt)) or 0.0
    output = ((_priced(model, Usage(prompt, SMALL)) or 0.0) - whole) / SMALL
    cached = [(_priced(model, Usage(0, 0, *kind)) or 0.0) / prompt for kind in ((prompt, 0), (0, prompt))]
    return whole / prompt, output, *cached


def _counts(usage: Usage) -> tuple[int, int, int, int]:
    return usage.input_tokens, usage.output_tokens, usage.cache_write_tokens, usage.cache_read_tokens


def _priced(model: str, usage: Usage) -> float | None:
    """Return the table's price, or None."""
    import genai_prices

    counted = genai_prices.Usage(
        # The table's input includes all three numbers that the Messages API reports separately.
        input_tokens=usage.input_tokens + usage.cache_write_tokens + usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
    )
    for provider in PROVIDERS:
        try:
            return float(genai_prices.calc_price(counted, model, provider_id=provider).total_price)
        except LookupError:
            continue
    return None
