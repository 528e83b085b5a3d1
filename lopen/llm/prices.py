"""The cost of a request. The only importer of `genai_prices`, which ships its price table: no network is used."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from lopen.llm.messages import Usage

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
