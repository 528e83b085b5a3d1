"""What a request cost. The only importer of `genai_prices`, whose table ships with it: no network is used."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from lopen.llm.messages import Usage

PROVIDERS: Final = (None, "aws")  # the second knows ids like `us.anthropic.claude-…`
SMALL, LARGE = (
    1_000,
    1_000_000,
)  # a single prompt's size that no tier starts below, and that all have started at


def cost_usd(model: str, usage: Usage) -> float | None:
    """US dollars for one request at list prices, or None for a model without a known price.

    Price it request by request: some models have tiers that go by the size of a single prompt.
    """
    rates = _flat_rates(model)
    if rates is None:
        return _priced(model, usage)
    return sum(rate * tokens for rate, tokens in zip(rates, _counts(usage), strict=True))


@lru_cache(maxsize=64)
def _flat_rates(model: str) -> tuple[float, ...] | None:
    """Dollars a token by kind, where they do not depend on how many there are: asking the table is slow."""
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
    """As the table has it."""
    import genai_prices

    counted = genai_prices.Usage(
        # The table counts as all input what the Messages API reports as three separate numbers.
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
